"""The types of the results of endpoints, from which their JSON schemas are made."""

from typing import Any, Literal

from pydantic import TypeAdapter
from typing_extensions import TypedDict


class Confidence(TypedDict):
    """A class and its probability."""

    label: str
    confidence: float


class Prediction(TypedDict):
    """The most likely classes, and whether the model is confident in the first."""

    label: str
    is_confident: bool
    confidences: list[Confidence]


class Classified(Prediction):
    """A prediction with its model; ``labels`` are all classes of the model if there are at most 100."""

    preset: str
    labels: list[str]


class Predicted(Classified):
    """A prediction with the grid of patches; without classes, ``label`` is "" and ``confidences`` is empty."""

    grid: list[int]


class BeforeAndAfter(TypedDict):
    """The prediction with and without the dropped patches."""

    before: Prediction
    after: Prediction


class HeadEffects(TypedDict):
    """What a class loses without each head alone, a list for each block, and the prediction with those silent."""

    effects: list[list[float]]
    label: str
    against: str
    prediction: Prediction


class _Grid(TypedDict):
    rows: int
    cols: int


class Values(_Grid):
    """One number for each patch, row by row."""

    map: list[list[float]]


class Explained(Values):
    """A map and the method that computed it."""

    method: str
    class_specific: bool


class Heatmap(Explained):
    """One map, row by row, in the unit of its method."""

    preset: str
    label: str


class ExplainedImage(Classified, Explained):
    """A prediction and the map that explains a class."""

    explained: str


class Lengths(Values):
    """The length of each token, and [row, col] of the tokens that are far longer than the rest."""

    outliers: list[list[int]]


class Components(_Grid):
    """Principal components of each patch, row by row; null where the background was removed."""

    map: list[list[list[float] | None]]


class Segments(_Grid):
    """The segment of each patch, from 0, row by row."""

    map: list[list[int]]


class Areas(TypedDict):
    """Areas under the deletion and insertion curves of a map and of random orders."""

    deletion: float
    insertion: float
    random_deletion: float
    random_insertion: float


LogitLens = list[list[Confidence]] | list[list[list[Confidence]]]
"""The ranking at each depth, or the most likely class at each depth, row and column."""


class PresetEntry(TypedDict):
    """A model; ``labels`` are its classes if there are at most 100, and ``/labels`` gives all."""

    name: str
    title: str
    task: Literal["digits", "photos"]
    num_labels: int
    labels: list[str]
    image_size: int
    patch_sizes: list[int]
    default_patch_size: int
    num_parameters: int
    num_blocks: int
    num_heads: int
    source: str
    flexible: bool


class MethodEntry(TypedDict):
    """An explanation method."""

    name: str
    title: str
    class_specific: bool
    cost: str
    unit: str
    signed: bool
    use: str
    recommended: str
    description: str
    floor: dict[str, Any]
    options: list[dict[str, Any]]


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type made of the classes of this module, without references."""
    schema = TypeAdapter(kind).json_schema()
    definitions = schema.pop("$defs", {})

    def resolve(value: Any) -> Any:
        if isinstance(value, list):
            return [resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return resolve(definitions[value["$ref"].rpartition("/")[2]])
        return {key: resolve(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}

    return resolve(schema)
