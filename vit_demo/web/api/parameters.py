"""The parameters of endpoints: their descriptions, checks and JSON schemas."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from gradio.data_classes import FileData

from vit_demo.defaults import DIGITS_PRESET, PHOTOS_PRESET, WORDS_PRESET
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS, find_method
from vit_demo.web.requests import parse
from vit_demo.weights import PRESETS

MAX_DROPPED = 10_000
"""Most patches in a call."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter of endpoints.

    Attributes:
        description: Its meaning, for callers.
        check: Converts what was sent to a valid value; raises ``InputError``.
        schema: Its JSON schema, unless the Python type says it all.
    """

    description: str
    check: Callable[[Any], Any] = lambda value: value
    schema: dict[str, Any] = field(default_factory=dict)


def whole_number(name: str, lowest: int = -1) -> Callable[[Any], int]:
    """Makes a check for whole numbers."""
    return lambda value: parse.integer(value, name, lowest)


def method_name(value: Any) -> str:
    """Checks the name of a method."""
    name = parse.short_string(value, "method")
    find_method(name)
    return name


def dropped_patches(value: Any) -> list[tuple[int, int]]:
    """Checks a list of patches by row and column."""
    pairs: list[Any] = value if isinstance(value, list) else []
    if not 0 < len(pairs) <= MAX_DROPPED or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError("The patches are not a list of [row, col]: send one.")
    return [(parse.integer(row, "row"), parse.integer(col, "column")) for row, col in pairs]


FILE = FileData.model_json_schema()
"""The schema by which clients recognize a file to upload."""

Picture = Annotated[
    Any,
    Parameter("The picture: a photo, or a drawing of one digit. An uploaded file, or a data URL.", schema=FILE),
]
OtherPicture = Annotated[
    Exploration | None,
    Parameter(
        "A second picture, compared with the first, or analysed together with it; none for the first alone.",
        lambda value: parse.image_source(value) if value else None,
        FILE,
    ),
]
PresetName = Annotated[
    str,
    Parameter(
        f'Name of the model, from presets, or a repository of the Hub as org/name; "" for "{DIGITS_PRESET}" if the '
        f'picture is a drawing, else "{PHOTOS_PRESET}". Name a digits model for a photo of a handwritten digit.',
        schema={"anyOf": [{"enum": ["", *PRESETS]}, {"type": "string", "pattern": "^[^/]+/[^/]+$"}]},
    ),
]
Words = Annotated[
    tuple[str, ...],
    Parameter(
        f'Classes of your own, with commas between them, such as "a lion, a cat"; "" for the model\'s own. For models '
        f'that take words; "{WORDS_PRESET}" if no preset is named. One word alone is compared with an empty text.',
        lambda value: parse.words(value or ""),
        {"type": "string"},
    ),
]
PatchSize = Annotated[int, Parameter("Side of a patch in pixels; 0 for the model's default.")]
MethodName = Annotated[
    str,
    Parameter(
        'Name of the method, from methods: "relevance", "attnlrp", "occlusion" and "local_surrogate" show the evidence '
        'for a class; "attention", "rollout" and "norm_attention" do not depend on the class.',
        method_name,
        {"enum": list(METHODS)},
    ),
]
Label = Annotated[
    str | None,
    Parameter(
        'Class to explain; "" for the predicted one. Only class-specific methods depend on it.',
        lambda value: parse.short_string(value or "", "label") or None,
    ),
]
Against = Annotated[
    str | None,
    Parameter(
        'Another class: the evidence for the first rather than for this one; "" for none. Not every method compares.',
        lambda value: parse.short_string(value or "", "against") or None,
    ),
]
Block = Annotated[int, Parameter("Block, from 0; -1 for the last.", whole_number("block"))]
Head = Annotated[int, Parameter("Head, from 0; -1 for the mean of all.", whole_number("head"))]
QueryRow = Annotated[
    int,
    Parameter(
        "Row of the patch that the map is about, from 0; -1 for none: the class token, where there is one.",
        whole_number("row"),
    ),
]
QueryCol = Annotated[int, Parameter("Its column, from 0; -1 for none.", whole_number("col"))]
Row = Annotated[int, Parameter("Row of the patch, from 0.", whole_number("row", 0))]
Col = Annotated[int, Parameter("Its column, from 0.", whole_number("column", 0))]
NumSegments = Annotated[int, Parameter("How many segments, 2 to 12.", whole_number("number of segments", 0))]
ByPatch = Annotated[
    bool, Parameter("Whether to predict from the token of each patch alone, and not from the whole picture.", bool)
]
RemoveBackground = Annotated[
    bool,
    Parameter("Whether to leave out the patches on one side of zero of the first component, and fit again.", bool),
]
DroppedPatches = Annotated[
    list[tuple[int, int]],
    Parameter(
        "The patches to drop, as a list of [row, col], from 0.",
        dropped_patches,
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    ),
]
