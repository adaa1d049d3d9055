"""The parameters of endpoints: types with pydantic's validators and descriptions, which give the JSON schemas, too."""

from typing import Annotated, Any

from gradio.data_classes import FileData
from pydantic import BeforeValidator, Field, SkipValidation, WithJsonSchema

from vit_demo.defaults import DIGITS_PRESET, PHOTOS_PRESET, WORDS_PRESET
from vit_demo.errors import InputError
from vit_demo.methods import METHODS
from vit_demo.web.requests import parse
from vit_demo.web.requests.parse import whole_number
from vit_demo.weights import PRESETS

MAX_DROPPED = 10_000  # most patches in a call


def dropped_patches(value: Any) -> list[tuple[int, int]]:
    """Checks a list of patches by row and column."""
    pairs: list[Any] = value if isinstance(value, list) else []
    if not 0 < len(pairs) <= MAX_DROPPED or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError("The patches are not a list of [row, col]: send one.")
    return [(parse.integer(row, "row"), parse.integer(col, "column")) for row, col in pairs]


def label(name: str) -> BeforeValidator:
    """The check of a class's name, or of "", which becomes None."""
    return BeforeValidator(lambda value: parse.short_string(value or "", name) or None)


def described(text: str, **schema: Any) -> WithJsonSchema:
    """The JSON schema of a type in place of pydantic's: that of a text, unless another is given."""
    return WithJsonSchema({"description": text, **(schema or {"type": "string"})})


FILE = FileData.model_json_schema()  # the schema by which clients recognize a file to upload

Picture = Annotated[
    Any,
    described("The picture: a photo, or a drawing of one digit. An uploaded file, or a data URL.", title=FILE["title"]),
]
OtherPicture = Annotated[
    Any,  # in an endpoint, an `Exploration` or None
    BeforeValidator(lambda value: parse.image_source(value) if value else None),
    described(
        "A second picture, compared with the first, or analysed together with it; none for the first alone.",
        title=FILE["title"],
    ),
]
PresetName = Annotated[
    str,
    SkipValidation,
    described(
        f'Name of the model, from presets, or a repository of the Hub as org/name; "" for '
        f'"{DIGITS_PRESET}" if the picture is a drawing, else "{PHOTOS_PRESET}". Name a digits model for a photo of a '
        "handwritten digit.",
        anyOf=[{"enum": ["", *PRESETS]}, {"type": "string", "pattern": "^[^/]+/[^/]+$"}],
    ),
]
Words = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: parse.words(value or "")),
    described(
        'Classes of your own, with commas between them, such as "a lion, a cat"; "" for the model\'s own. '
        f'For models that take words; "{WORDS_PRESET}" if no preset is named. One word alone is compared with an empty '
        "text."
    ),
]
PatchSize = Annotated[int, SkipValidation, Field(description="Side of a patch in pixels; 0 for the model's default.")]
MethodName = Annotated[
    parse.MethodName,
    described(
        "Name of the method, from methods: all show the evidence for a class, but for "
        f"{', '.join(name for name, method in METHODS.items() if not method.class_specific)}.",
        type="string",
        enum=list(METHODS),
    ),
]
Label = Annotated[
    str | None,
    label("label"),
    described('Class to explain; "" for the predicted one. Only class-specific methods depend on it.'),
]
Against = Annotated[
    str | None,
    label("against"),
    described(
        'Another class: the evidence for the first rather than for this one; "" for none. Not every method compares.'
    ),
]
Block = Annotated[int, whole_number("block", -1), Field(description="Block, from 0; -1 for the last.")]
Head = Annotated[int, whole_number("head", -1), Field(description="Head, from 0; -1 for the mean of all.")]
QueryRow = Annotated[
    int,
    whole_number("row", -1),
    Field(
        description="Row of the patch that the map is about, from 0; -1 for none: the class token, where there is one."
    ),
]
QueryCol = Annotated[int, whole_number("col", -1), Field(description="Its column, from 0; -1 for none.")]
Row = Annotated[int, whole_number("row"), Field(description="Row of the patch, from 0.")]
Col = Annotated[int, whole_number("column"), Field(description="Its column, from 0.")]
NumSegments = Annotated[int, whole_number("number of segments"), Field(description="How many segments, 2 to 12.")]
ByPatch = Annotated[
    bool,
    BeforeValidator(bool),
    Field(description="Whether to predict from the token of each patch alone, and not from the whole picture."),
]
RemoveBackground = Annotated[
    bool,
    BeforeValidator(bool),
    Field(description="Whether to leave out the patches on one side of zero of the first component, and fit again."),
]
SilentHeads = Annotated[
    str,
    BeforeValidator(lambda value: parse.short_string(value or "", "silent heads")),
    described('Heads that are silent throughout, block.head from 0 with commas between them, "2.1,4.3"; "" for none.'),
]
DroppedPatches = Annotated[
    list[tuple[int, int]],
    BeforeValidator(dropped_patches),
    described(
        "The patches to drop, as a list of [row, col], from 0.",
        type="array",
        items={"type": "array", "items": {"type": "integer"}},
    ),
]
