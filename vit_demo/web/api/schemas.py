"""The types of what endpoints return, from which their JSON schemas are made."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict


class Confidence(TypedDict):
    """A class and its probability."""

    label: str
    confidence: float


class Predicted(TypedDict):
    """The five most likely classes; "" and none for a model without classes.

    ``labels`` are all classes that the model knows if these are at most 100: it takes anything else for one of them.
    """

    label: str
    is_confident: bool
    confidences: list[Confidence]
    preset: str
    labels: list[str]
    grid: list[int]


class Prediction(TypedDict):
    """The five most likely classes, and whether the confidence in the first one is not low."""

    label: str
    is_confident: bool
    confidences: list[Confidence]


class Heatmap(TypedDict):
    """One map, row by row, in the unit of its method."""

    map: list[list[float]]
    rows: int
    cols: int
    preset: str
    method: str
    class_specific: bool
    label: str


class ExplainedImage(TypedDict):
    """A prediction and the map that explains a class; ``labels`` as in ``Predicted``."""

    label: str
    is_confident: bool
    confidences: list[Confidence]
    preset: str
    labels: list[str]
    explained: str
    method: str
    class_specific: bool
    rows: int
    cols: int
    map: list[list[float]]


class BeforeAndAfter(TypedDict):
    """The prediction with and without the dropped patches."""

    before: Prediction
    after: Prediction


class Areas(TypedDict):
    """Areas under the curves of a map and of random orders, from 0 to 1."""

    deletion: float
    insertion: float
    random_deletion: float
    random_insertion: float


class Values(TypedDict):
    """One number for each patch, row by row."""

    map: list[list[float]]
    rows: int
    cols: int


class Components(TypedDict):
    """Principal components of each patch, row by row; null where the background was removed."""

    map: list[list[list[float] | None]]
    rows: int
    cols: int


class Segments(TypedDict):
    """The segment of each patch, from 0, row by row."""

    map: list[list[int]]
    rows: int
    cols: int


class Lengths(TypedDict):
    """The length of each token, and [row, col] of those that are far longer than the rest."""

    map: list[list[float]]
    rows: int
    cols: int
    outliers: list[list[int]]


LogitLens = list[list[Confidence]] | list[list[list[Confidence]]]
"""The ranking at each depth, or at each depth, row and column the most likely class."""


class PresetEntry(TypedDict):
    """A model; ``labels`` are its classes if these are at most 100, ``/labels`` gives those of all."""

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
    recommended: str
    description: str
    floor: dict[str, Any]
    options: list[dict[str, Any]]


class BatchEntry(TypedDict):
    """The result of one picture, or why there is none."""

    result: NotRequired[Any]
    error: NotRequired[str]


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type, without references.

    Args:
        kind: A class of this module, or a type made of them.
    """
    schema = TypeAdapter(kind).json_schema()
    definitions = schema.pop("$defs", {})

    def resolve(value: Any) -> Any:
        if isinstance(value, list):
            return [resolve(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return resolve(definitions[value["$ref"].rpartition("/")[2]])
        return {key: resolve(one) for key, one in value.items() if not (key == "title" and isinstance(one, str))}

    return resolve(schema)
