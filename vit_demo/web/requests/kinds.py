"""The kinds of requests about a result: which fields each has, and what computes its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vit_demo.errors import EmptyDrawingError
from vit_demo.web.requests import parse, tour
from vit_demo.web.requests.faithfulness import CurveRequest, curves, random_map
from vit_demo.web.requests.maps import Json, MapRequest, RequestedResult
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
from vit_demo.web.requests.smallest_sets import SetRequest, smallest_set
from vit_demo.web.requests.tokens import TokenRequest, tokens_result

NOTHING_DRAWN = "Draw a digit, 0 to 9, to see the model’s prediction."
"""Instead of a result while there is no ink."""


@dataclass(frozen=True)
class Kind:
    """A kind of request.

    Attributes:
        compute: From the result and the parsed fields to JSON.
        parse: Checks the fields of a request about a source and raises ``InputError`` if one is invalid. Requests of
            one kind about one source are equal if what it returns is.
        many_passes: Whether it takes many forward passes.
    """

    compute: Callable[[RequestedResult, Any], Mapping[str, object]]
    parse: Callable[[Json, parse.ResultRequest], Hashable] = lambda fields, source: None
    many_passes: bool = False


def map_result(requested: RequestedResult, request: MapRequest) -> Json:
    """``{"map": float32 [N]}``: the true values of a map, row by row."""
    return {"map": encode(requested.map_values(request).astype(np.float32))}


def faithfulness_result(requested: RequestedResult, request: tuple[MapRequest, CurveRequest]) -> Json:
    """Deletion and insertion curves of a map; see ``requests.faithfulness``."""
    return curves(requested.explore(), requested.map_values(request[0]), request[1])


def random_order_result(requested: RequestedResult, request: CurveRequest) -> Json:
    """Deletion and insertion curves of a random order, for comparison."""
    result = requested.explore()
    return curves(result, random_map(result, request.order), request)


def randomization_result(requested: RequestedResult, request: MapRequest) -> Json:
    """Rank correlations of a method's map as the weights are randomized; see ``metrics.randomization``."""
    result = requested.explore()
    return {"correlations": result.randomization(request.method, request.label, against=request.compared)}


def logit_lens_result(requested: RequestedResult, request: None) -> Json:
    """The most likely class before the first block and after each."""
    predictions = [ranking[0] for ranking in requested.explore().logit_lens()]
    return {"predictions": [{"label": label, "probability": probability} for label, probability in predictions]}


def exploration_result(requested: RequestedResult, request: None) -> ResultPayload | EmptyPayload:
    """The payload of the result; a message in its place if nothing is drawn."""
    try:
        return payload(requested.explore(), requested.request)
    except EmptyDrawingError:
        return empty(NOTHING_DRAWN)


def attention_maps_result(requested: RequestedResult, query: int) -> Json:
    """What one patch attends to in every block and head, as the payload has it of the class token."""
    result = requested.explore()
    return {"maps": quantized(result.attention_maps(divmod(query, result.grid[1])))}


KINDS: dict[str, Kind] = {
    "result": Kind(exploration_result),
    "map": Kind(map_result, lambda fields, _: MapRequest.parse(fields)),
    "block": Kind(
        lambda requested, block: block_payload(requested.explore(), block),
        lambda fields, _: parse.integer(fields.get("block"), "block"),
    ),
    "attention_maps": Kind(attention_maps_result, lambda fields, _: parse.integer(fields.get("query"), "query")),
    "logit_lens": Kind(logit_lens_result),
    "tokens": Kind(tokens_result, TokenRequest.parse),
    "input": Kind(lambda requested, _: {"image": data_url(model_input(requested.explore()), lossless=True)}),
    "steps": Kind(lambda requested, _: tour.network_steps(requested.explore())),
    "steps_patch": Kind(
        lambda requested, fields: tour.patch_steps(requested.explore(), fields),
        lambda fields, _: tour.StepRequest.parse(fields),
    ),
    "steps_block": Kind(
        lambda requested, fields: tour.block_steps(requested.explore(), fields),
        lambda fields, _: tour.StepRequest.parse(fields),
    ),
    "faithfulness": Kind(
        faithfulness_result, lambda fields, _: (MapRequest.parse(fields), CurveRequest.parse(fields)), many_passes=True
    ),
    "random_order": Kind(random_order_result, lambda fields, _: CurveRequest.parse(fields), many_passes=True),
    "randomization": Kind(randomization_result, lambda fields, _: MapRequest.parse(fields), many_passes=True),
    "smallest_set": Kind(
        lambda requested, fields: smallest_set(requested.explore(), fields),
        lambda fields, _: SetRequest.parse(fields),
        many_passes=True,
    ),
}
"""The kinds by the name that requests have in the field ``kind``."""
