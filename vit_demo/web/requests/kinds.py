"""The kinds of requests about a result: which fields each has, and what computes its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vit_demo.defaults import BASELINES, NUM_RANDOM_ORDERS, Baseline
from vit_demo.errors import EmptyDrawingError, InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.heatmaps import delete_and_insert
from vit_demo.inference.smallest_sets import is_predicted
from vit_demo.web.requests import parse, tour
from vit_demo.web.requests.maps import MapRequest, RequestedResult
from vit_demo.web.requests.parse import Json
from vit_demo.web.requests.payload import (
    EmptyPayload,
    ResultPayload,
    block_payload,
    data_url,
    empty,
    encode,
    model_input,
    payload,
    quantized,
)
from vit_demo.web.requests.tokens import TokenRequest, tokens_result

NOTHING_DRAWN = "Draw a digit, 0 to 9, to see the model’s prediction."
"""The message in place of a result while there is no ink."""

HALF = 0.5
"""The share of its probability that a class loses without the patches it needs, unless another class is predicted."""


@dataclass(frozen=True)
class CurveRequest:
    """Which curves of a result are wanted.

    Attributes:
        baseline: What replaces a removed patch; see ``metrics.baseline_image``.
        order: Number of the random order, from 0; not used for a heatmap.
        label: Index of the class; None for the predicted one.
        against: Index of the class to compare it with, or None.
    """

    baseline: Baseline
    order: int
    label: int | None
    against: int | None

    @classmethod
    def parse(cls, fields: Json) -> CurveRequest:
        """Checks the fields of a request; ``InputError`` if one is not valid."""
        baseline = fields.get("baseline", "mean")
        if baseline not in BASELINES:
            raise InputError(f"There is no such baseline: choose one of {', '.join(BASELINES)}.")
        order = parse.integer(fields.get("order", 0), "order")
        if order >= NUM_RANDOM_ORDERS:
            raise InputError(f"There is no random order {order}: there are {NUM_RANDOM_ORDERS}, counted from 0.")
        label, against = (parse.optional_integer(fields, name) for name in ("label", "against"))
        return cls(baseline, order, label, against)


@dataclass(frozen=True)
class SetRequest:
    """Which set of patches is wanted.

    Attributes:
        wanted: ``"enough"`` or ``"needed"``.
        label: Index of the class; None for the predicted one.
        without: Indices of patches, row by row, that must not be in a set that is enough.
    """

    wanted: str
    label: int | None = None
    without: tuple[int, ...] = ()

    @classmethod
    def parse(cls, fields: Json) -> SetRequest:
        """Checks the fields of a request; ``InputError`` if one is not valid."""
        wanted = fields.get("wanted")
        if wanted not in ("enough", "needed"):
            raise InputError('There is no such set: choose "enough" or "needed".')
        label = parse.optional_integer(fields, "label")
        return cls(wanted, label, parse.patch_indices(fields.get("without", [])))


@dataclass(frozen=True)
class RequestKind:
    """A kind of request.

    Attributes:
        compute: Makes JSON from the result and the parsed fields.
        parse: Checks the fields of a request, whose ``source`` is a ``ResultRequest``; raises ``InputError``. Two
            requests about the same source are equal if their parsed fields are.
        many_passes: Whether it takes many forward passes.
    """

    compute: Callable[[RequestedResult, Any], Mapping[str, object]]
    parse: Callable[[Json], Hashable] = lambda fields: None
    many_passes: bool = False


def _of_result(
    compute: Callable[[Exploration, Any], Mapping[str, object]],
) -> Callable[[RequestedResult, Any], Mapping[str, object]]:
    return lambda requested, request: compute(requested.explore(), request)


def map_result(requested: RequestedResult, request: MapRequest) -> Json:
    """``{"map": float32 [N]}``: the values of a map, row by row."""
    return {"map": encode(requested.map_values(request).astype(np.float32))}


def curves(result: Exploration, values: NDArray[np.float32] | int, request: CurveRequest) -> Json:
    """``{"fractions", "deletion": {"curve", "area"}, "insertion": {"curve", "area"}}`` of a map, or a random order."""
    order = values if isinstance(values, int) else torch.from_numpy(values)
    measured = delete_and_insert(result, order, request.label, request.baseline, against=request.against, seeds=0)
    return {
        "fractions": measured.fractions.tolist(),
        "deletion": {"curve": measured.deletion.tolist(), "area": measured.deletion_area},
        "insertion": {"curve": measured.insertion.tolist(), "area": measured.insertion_area},
    }


def faithfulness_result(requested: RequestedResult, request: tuple[MapRequest, CurveRequest]) -> Json:
    """Deletion and insertion curves of a map."""
    return curves(requested.explore(), requested.map_values(request[0]), request[1])


def random_order_result(result: Exploration, request: CurveRequest) -> Json:
    """Deletion and insertion curves of a random order, for comparison."""
    return curves(result, request.order, request)


def smallest_set(result: Exploration, request: SetRequest) -> Json:
    """The fields of ``metrics.PatchSet`` with patches as indices, row by row; ``{"patches": None}`` without a set."""
    columns = result.grid[1]
    if request.wanted == "enough":
        found = result.enough(request.label, without=[divmod(patch, columns) for patch in request.without])
    else:
        target = result.target(request.label)
        share = None if result.preset.scores != "sigmoid" and is_predicted(result, target) else HALF
        found = result.needed(request.label, share)
    if found is None:
        return {"patches": None}
    return {
        "patches": [row * columns + col for row, col in found.patches],
        "probability": found.probability,
        "prediction": result.labels[found.prediction],
        "is_minimal": found.is_minimal,
        "passes": found.passes,
    }


def randomization_result(result: Exploration, request: MapRequest) -> Json:
    """Rank correlations of a method's map as the weights are randomized; see ``metrics.randomization``."""
    return {"correlations": result.randomization(request.method, request.label, against=request.compared)}


def logit_lens_result(result: Exploration, request: None) -> Json:
    """The most likely class before the first block and after each."""
    predictions = [ranking[0] for ranking in result.logit_lens()]
    return {"predictions": [{"label": label, "probability": probability} for label, probability in predictions]}


def exploration_result(requested: RequestedResult, request: None) -> ResultPayload | EmptyPayload:
    """The payload of the result, or a message if nothing is drawn."""
    try:
        return payload(requested.explore(), requested.request)
    except EmptyDrawingError:
        if requested.request.source.reference:  # a photo
            raise
        return empty(NOTHING_DRAWN)


def attention_maps_result(result: Exploration, query: int) -> Json:
    """What one patch attends to in every block and head; the payload has the same for the class token."""
    return {"maps": quantized(result.attention_maps(divmod(query, result.grid[1])))}


def input_result(result: Exploration, request: None) -> Json:
    """The network's input as a data URL."""
    return {"image": data_url(model_input(result), lossless=True)}


def _whole_number(name: str) -> Callable[[Json], int]:
    return lambda fields: parse.integer(fields.get(name), name)


def _map_and_curve(fields: Json) -> tuple[MapRequest, CurveRequest]:
    return MapRequest.parse(fields), CurveRequest.parse(fields)


KINDS: dict[str, RequestKind] = {
    "result": RequestKind(exploration_result),
    "map": RequestKind(map_result, MapRequest.parse),
    "block": RequestKind(_of_result(block_payload), _whole_number("block")),
    "attention_maps": RequestKind(_of_result(attention_maps_result), _whole_number("query")),
    "logit_lens": RequestKind(_of_result(logit_lens_result)),
    "tokens": RequestKind(tokens_result, TokenRequest.parse),
    "input": RequestKind(_of_result(input_result)),
    "steps": RequestKind(_of_result(tour.network_steps)),
    "steps_patch": RequestKind(_of_result(tour.patch_steps), tour.StepRequest.parse),
    "steps_block": RequestKind(_of_result(tour.block_steps), tour.StepRequest.parse),
    "faithfulness": RequestKind(faithfulness_result, _map_and_curve, many_passes=True),
    "random_order": RequestKind(_of_result(random_order_result), CurveRequest.parse, many_passes=True),
    "randomization": RequestKind(_of_result(randomization_result), MapRequest.parse, many_passes=True),
    "smallest_set": RequestKind(_of_result(smallest_set), SetRequest.parse, many_passes=True),
}
"""The kinds by the name that requests have in the field ``kind``."""
