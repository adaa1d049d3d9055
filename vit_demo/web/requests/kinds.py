"""The kinds of requests: which fields each has, and what computes its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator

from vit_demo.defaults import BASELINES, NUM_RANDOM_ORDERS, Baseline
from vit_demo.errors import EmptyDrawingError, InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.heatmaps import delete_and_insert
from vit_demo.inference.smallest_sets import is_predicted
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job, Turn, current_job, owner
from vit_demo.web.catalog import visitor_presets
from vit_demo.web.catalog.menu import menu_entries, model_entry
from vit_demo.web.catalog.method_docs import BOARD, FEATURES, method_html
from vit_demo.web.requests import heads, parse, tour
from vit_demo.web.requests.building import NetworkRequest, network_size
from vit_demo.web.requests.film import FilmRequest, film_result
from vit_demo.web.requests.maps import MapRequest, RequestedResult
from vit_demo.web.requests.packing import pack
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
from vit_demo.web.requests.teaching import TeachRequest, teach_job
from vit_demo.web.requests.tokens import TokenRequest, tokens_result
from vit_demo.web.requests.training import archive, handle_training
from vit_demo.web.requests.waiting import find_preset
from vit_demo.weights import costs
from vit_demo.weights.kept_networks import keep_taught
from vit_demo.weights.taught_heads import from_link

NOTHING_DRAWN = "Here: one digit from 0 to 9."
"""The message in place of a result while there is no ink."""

HALF = 0.5  # the share of its probability that a class loses without what it needs, or another is predicted

NO_BASELINE = f"There is no such baseline: choose one of {', '.join(BASELINES)}."
NO_SET = 'There is no such set: choose "enough" or "needed".'


def _order(value: Any) -> int:
    order = parse.integer(value, "order")
    if order >= NUM_RANDOM_ORDERS:
        raise InputError(f"There is no random order {order}: there are {NUM_RANDOM_ORDERS}, counted from 0.")
    return order


@dataclass(frozen=True)
class CurveRequest:
    """Which curves of a result are wanted.

    Attributes:
        baseline: What replaces a removed patch; see ``metrics.baseline_image``.
        order: Number of the random order, from 0; not used for a heatmap.
        label: Index of the class; None for the predicted one.
        against: Index of the class to compare it with, or None.
    """

    baseline: Annotated[Baseline, parse.one_of(BASELINES, NO_BASELINE)] = "mean"
    order: Annotated[int, BeforeValidator(_order)] = 0
    label: parse.Label = None
    against: parse.Against = None


@dataclass(frozen=True)
class SetRequest:
    """Which set of patches is wanted.

    Attributes:
        wanted: ``"enough"`` or ``"needed"``.
        label: Index of the class; None for the predicted one.
        without: Indices of patches, row by row, that must not be in a set that is enough.
    """

    wanted: Annotated[str, parse.one_of(("enough", "needed"), NO_SET)]
    label: parse.Label = None
    without: parse.Patches = ()


@dataclass(frozen=True)
class FaithfulnessRequest(CurveRequest, MapRequest):
    """Which map of a result is tested, and how."""

    @property
    def map(self) -> MapRequest:
        """The map alone."""
        return MapRequest(**{field.name: getattr(self, field.name) for field in fields(MapRequest)})


@dataclass(frozen=True)
class BlockRequest:
    """Which block of a result is wanted, from 0."""

    block: parse.Block


@dataclass(frozen=True)
class PatchRequest:
    """Which patch of a result is wanted, row by row."""

    query: Annotated[int, parse.whole_number("query")]


@dataclass(frozen=True)
class MethodRequest:
    """Which method, or ``FEATURES``, is to be explained."""

    method: Annotated[str, BeforeValidator(lambda value: value if value == FEATURES else parse.method_name(value))]


@dataclass(frozen=True)
class ModelRequest:
    """Which model is to be described; its weights are downloaded if necessary."""

    name: Annotated[str, BeforeValidator(visitor_presets.model_name)]
    taught: Any = None  # the text of a link, by which one that was taught is made


@dataclass(frozen=True)
class NoFields:
    """Nothing but the kind, and the source if there is one."""


@dataclass(frozen=True)
class RequestKind:
    """A kind of request about a result, whose ``source`` is a ``ResultRequest``.

    Attributes:
        compute: Makes JSON from the result and the checked fields, in a job.
        fields: A dataclass of the other fields; requests with equal fields and sources are equal.
        cost: What it, or its first turn, takes: one pass, a map, or many passes.
    """

    compute: Callable[[RequestedResult, Any], Mapping[str, object] | Generator[Turn, None, Mapping[str, object]]]
    fields: type = NoFields
    cost: Callable[..., costs.Cost] = costs.forward


@dataclass(frozen=True)
class OtherKind:
    """A kind of request about no result.

    Attributes:
        answer: Makes JSON from the checked fields, or a job of the packed reply.
        fields: A dataclass of the fields; ``dict`` if ``answer`` checks them.
    """

    answer: Callable[[Any], Awaitable[Json | Job[bytes]]]
    fields: type = NoFields


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


def faithfulness_result(requested: RequestedResult, request: FaithfulnessRequest) -> Json:
    """Deletion and insertion curves of a map."""
    return curves(requested.explore(), requested.map_values(request.map), request)


def smallest_set(result: Exploration, request: SetRequest) -> Json:
    """The fields of ``metrics.PatchSet`` with patches as indices, row by row; ``{"patches": None}`` without a set."""
    columns = result.grid[1]
    if request.wanted == "enough":
        found = result.enough(request.label, without=[divmod(patch, columns) for patch in request.without])
    else:
        target = result.target(request.label)
        share = None if result.preset.scores != "sigmoid" and is_predicted(result, target) else HALF
        job = current_job.get()

        def show(*sets: list[tuple[int, int]]) -> None:
            if job is not None:
                job.tried, job.fewest = ([row * columns + col for row, col in patches] for patches in sets)

        found = result.needed(request.label, share, tried=show)
    if found is None:
        return {"patches": None}
    return {
        "patches": [row * columns + col for row, col in found.patches],
        "probability": found.probability,
        "prediction": result.labels[found.prediction],
        "predicted_probability": found.predicted_probability,
        "is_minimal": found.is_minimal,
        "passes": found.passes,
    }


def randomization_result(result: Exploration, request: MapRequest) -> Json:
    """Rank correlations of a method's map as the weights are randomized; see ``metrics.randomization``."""
    return {"correlations": result.randomization(request.method, request.label, against=request.compared)}


def logit_lens_result(result: Exploration, request: NoFields) -> Json:
    """The most likely class before the first block and after each."""
    predictions = [ranking[0] for ranking in result.logit_lens()]
    return {"predictions": [{"label": label, "probability": probability} for label, probability in predictions]}


def exploration_result(requested: RequestedResult, request: NoFields) -> ResultPayload | EmptyPayload:
    """The payload of the result, or a message if nothing is drawn."""
    try:
        return payload(requested.explore(), requested.request, live=requested.live)
    except EmptyDrawingError:
        if requested.request.source.reference:  # a photo
            raise
        return empty(NOTHING_DRAWN)


def attention_maps_result(result: Exploration, request: PatchRequest) -> Json:
    """What one patch attends to in every block and head; the payload has the same for the class token."""
    return {"maps": quantized(result.attention_maps(divmod(request.query, result.grid[1])))}


async def method_docs(request: MethodRequest) -> Json:
    """How a method is computed, as HTML."""
    return {"html": method_html(request.method, BOARD)}


async def menu(request: NoFields) -> Json:
    """The models of the menu."""
    return {"models": menu_entries()}


async def model(request: ModelRequest) -> Json:
    """A model as an entry of the menu."""
    if request.taught is not None:
        parsed = from_link(request.taught)
        return model_entry(keep_taught(parsed.preset(await find_preset(parse.preset_name(parsed.model))), owner.get()))
    return model_entry(await find_preset(request.name), request.name)


async def teach(request: Json) -> Job[bytes]:
    """A network with classes of the visitor's own; see ``teach_job``."""
    wanted = TeachRequest.parse(request)
    return teach_job(wanted, await find_preset(wanted.name))


async def train(request: Json) -> Json | Job[bytes]:
    """The state of a training, see ``handle_training``; or with ``download``, its network as an archive."""
    if (download := request.get("download")) is None:
        return await handle_training(request)
    network = parse.short_string(download, "network")
    return get_engine().jobs.submit(("archive", network), lambda: pack({"result": archive(network)}), "files")


KINDS: dict[str, RequestKind | OtherKind] = {
    "result": RequestKind(exploration_result),
    "map": RequestKind(map_result, MapRequest, costs.backward),
    "block": RequestKind(_of_result(lambda result, request: block_payload(result, request.block)), BlockRequest),
    "attention_maps": RequestKind(_of_result(attention_maps_result), PatchRequest),
    "logit_lens": RequestKind(_of_result(logit_lens_result)),
    "film": RequestKind(_of_result(film_result), FilmRequest),
    "tokens": RequestKind(tokens_result, TokenRequest),
    "input": RequestKind(_of_result(lambda result, _: {"image": data_url(model_input(result), lossless=True)})),
    "steps": RequestKind(_of_result(tour.network_steps)),
    "steps_patch": RequestKind(_of_result(tour.patch_steps), tour.StepRequest),
    "steps_block": RequestKind(_of_result(tour.block_steps), tour.StepRequest),
    "faithfulness": RequestKind(faithfulness_result, FaithfulnessRequest, costs.many_passes),
    "random_order": RequestKind(
        _of_result(lambda result, request: curves(result, request.order, request)), CurveRequest, costs.many_passes
    ),
    "randomization": RequestKind(_of_result(randomization_result), MapRequest, costs.many_passes),
    "smallest_set": RequestKind(_of_result(smallest_set), SetRequest, costs.many_passes),
    "head_effects": RequestKind(_of_result(heads.effects), heads.HeadsRequest, costs.many_passes),
    "fewest_heads": RequestKind(_of_result(heads.fewest), cost=costs.many_passes),
    "contributions": RequestKind(_of_result(heads.contributions), heads.HeadsRequest, costs.backward),
    "method_docs": OtherKind(method_docs, MethodRequest),
    "models": OtherKind(menu),
    "model": OtherKind(model, ModelRequest),
    "network": OtherKind(network_size, NetworkRequest),
    "train": OtherKind(train, dict),
    "teach": OtherKind(teach, dict),
}
"""The kinds by the name that requests have in the field ``kind``."""
