"""Requests of the page about the result it shows: maps, tests, the logit lens, the result without some patches.

The page calls ``handle`` and gets the result, or the progress of the job that computes it; then it sends the same
request again. A request contains everything that is needed to compute its result, so nothing has to be started,
numbered or cancelled, equal requests of several visitors share one job, and any server can respond.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_demo import methods
from vit_demo.errors import InputError
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.engine import Engine, get_engine
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.jobs import Cancelled, Job
from vit_demo.web import handlers, requests
from vit_demo.web.limits import RESULT_CACHE_BYTES
from vit_demo.web.method_docs import method_html
from vit_demo.web.payload import block_payload, encode, payload
from vit_demo.weights import Preset

Json = dict[str, Any]

POLL_SECONDS = 0.4
"""How long one call waits for the result before it returns the progress."""

INTERNAL_ERROR = "This could not be computed: try another picture or a larger patch size."
"""The message for an unexpected exception, which is logged."""

_results: ByteCache[Json] = ByteCache(RESULT_CACHE_BYTES, lambda result: len(json.dumps(result)))
_maps: ByteCache[NDArray[np.float32]] = ByteCache(RESULT_CACHE_BYTES, lambda values: values.nbytes)


@dataclass(frozen=True)
class MapRequest:
    """Which map of a result is wanted.

    Attributes:
        method: One of ``methods.METHODS``.
        block: From 0; -1 for the last.
        head: From 0; None for the mean of all heads.
        query: Index of a patch, row by row; None for the class token.
        direction: ``"from"`` or ``"to"``.
        label: Index of a class; None for the predicted one.
    """

    method: str
    block: int = -1
    head: int | None = None
    query: int | None = None
    direction: str = "from"
    label: int | None = None

    @classmethod
    def parse(cls, fields: Json) -> MapRequest:
        """Checks the fields of a request.

        Raises:
            InputError: If one is missing or invalid.
        """
        method = requests.short_string(fields.get("method"), "method")
        methods.find_method(method)

        def integer(name: str, lowest: int = 0) -> int | None:
            value = fields.get(name)
            return None if value is None else requests.integer(value, name, lowest)

        block, head = integer("block", -1), integer("head", -1)
        direction = fields.get("direction", "from")
        if direction not in ("from", "to"):
            raise InputError('There is no such direction: choose "from" or "to".')
        return cls(
            method,
            -1 if block is None else block,
            None if head == -1 else head,
            integer("query"),
            direction,
            integer("label"),
        )

    def options(self, result: Exploration) -> dict[str, Any]:
        """The options of ``Exploration.heatmap``: those that the method has."""
        query = None if self.query is None else divmod(self.query, result.grid[1])
        options = {"layer": self.block, "head": self.head, "query": query, "direction": self.direction}
        method = methods.find_method(self.method)
        options = {name: value for name, value in options.items() if method.offers(name)}
        return options | ({"label": self.label} if method.class_specific else {})


@dataclass(frozen=True)
class RequestedResult:
    """The result that a request is about, and the engine that computes it."""

    engine: Engine
    preset: Preset
    request: requests.ResultRequest

    def explore(self) -> Exploration:
        """The result, from the cache or computed again."""
        request = self.request
        size = self.preset.check_patch_size(request.patch_size)
        whole = self.engine.explore_source(request.source, self.preset, size, request.fit)
        if not request.dropped:
            return whole
        rows, cols = whole.grid
        if request.dropped[-1] >= rows * cols:
            raise InputError(f"There is no patch {request.dropped[-1]}: the grid has {rows} rows and {cols} columns.")
        dropped = tuple(divmod(patch, cols) for patch in request.dropped)
        return self.engine.explore_source(request.source, self.preset, size, request.fit, dropped)

    def map_values(self, request: MapRequest) -> NDArray[np.float32]:
        """A map; cached, because a map that is tested was usually shown before."""

        def compute() -> NDArray[np.float32]:
            result = self.explore()
            return result.heatmap(request.method, **request.options(result))

        return self.engine.cached(_maps, ("map", self.request.key, request), compute, self.lane(request))

    def lane(self, request: MapRequest) -> str:
        """The lane of jobs in which a map is computed."""
        return "slow" if methods.find_method(request.method).is_slow else self.preset.task


def map_result(requested: RequestedResult, fields: Json) -> Json:
    """``{"map": float32 [N]}``: the true values of a map, row by row."""
    return {"map": encode(requested.map_values(MapRequest.parse(fields)).astype(np.float32))}


def faithfulness_result(requested: RequestedResult, fields: Json) -> Json:
    """Deletion and insertion curves of a map beside those of random orders; see ``metrics.Faithfulness``."""
    request = MapRequest.parse(fields)
    found = requested.explore().faithfulness(requested.map_values(request), label=request.label)
    deletion_beaten, insertion_beaten = found.orders_beaten
    return {
        "fractions": found.fractions.tolist(),
        "deletion": {
            "curve": found.deletion.tolist(),
            "random": found.random_deletion.tolist(),
            "area": found.deletion_area,
            "random_area": found.random_deletion_area,
            "orders_beaten": deletion_beaten,
        },
        "insertion": {
            "curve": found.insertion.tolist(),
            "random": found.random_insertion.tolist(),
            "area": found.insertion_area,
            "random_area": found.random_insertion_area,
            "orders_beaten": insertion_beaten,
        },
    }


def randomization_result(requested: RequestedResult, fields: Json) -> Json:
    """Rank correlations of a method's map as the weights are randomized; see ``metrics.randomization``."""
    request = MapRequest.parse(fields)
    return {"correlations": requested.explore().randomization(request.method, request.label)}


def logit_lens_result(requested: RequestedResult, fields: Json) -> Json:
    """The most likely class before the first block and after each."""
    predictions = [ranking[0] for ranking in requested.explore().logit_lens()]
    return {"predictions": [{"label": label, "probability": probability} for label, probability in predictions]}


def exploration_result(requested: RequestedResult, fields: Json) -> Json:
    """The payload of the result, as when some of its patches are dropped."""
    return payload(requested.explore(), requested.request)


def block_result(requested: RequestedResult, fields: Json) -> Json:
    """The queries and keys of one block, for grids whose trace is too large to send at once."""
    return block_payload(requested.explore(), requests.integer(fields.get("block"), "block"))


HANDLERS: dict[str, tuple[Callable[[RequestedResult, Json], Json], bool]] = {
    "map": (map_result, False),
    "block": (block_result, False),
    "logit_lens": (logit_lens_result, False),
    "result": (exploration_result, False),
    "faithfulness": (faithfulness_result, True),
    "randomization": (randomization_result, True),
}
"""The kinds of requests: what computes the result, and whether that takes many forward passes."""

FIELDS = ("method", "block", "head", "query", "direction", "label")
"""The fields of a request beside ``kind`` and ``source``; any others are ignored."""


async def handle(request: Any) -> Json:
    """Returns the result of a request, or the progress of its job.

    Args:
        request: ``kind``, one of ``HANDLERS``, with the ``source`` of the result (see ``payload.source_of``) and the
            fields of a ``MapRequest``; or ``{"kind": "method_docs", "method": ...}``.

    Returns:
        ``{"result": ...}``; ``{"error": message}``; or ``{"done", "total"}`` while the result is being computed
        (``total`` is 0 if it is not known): then the caller sends the same request again.
    """
    try:
        found = await _result_or_job(request)
        if not isinstance(found, Job):
            return {"result": found}
        if not await found.poll_async(POLL_SECONDS):
            return {"done": found.done, "total": found.total}
        return {"result": found.result()}
    except InputError as error:
        return {"error": str(error)}
    except Cancelled:
        return {"done": 0, "total": 0}
    except Exception:
        logging.getLogger(__name__).exception("A request of the page failed")
        return {"error": INTERNAL_ERROR}


async def _result_or_job(request: Any) -> Json | Job[Json]:
    if not isinstance(request, dict):
        raise InputError("The request is not an object: reload the page.")
    kind = requests.short_string(request.get("kind"), "kind of request")
    if kind == "method_docs":
        return {"html": method_html(requests.short_string(request.get("method"), "method"))}
    if kind not in HANDLERS:
        raise InputError(f"There is no request {kind!r}: choose one of {', '.join(HANDLERS)}.")
    compute, many_passes = HANDLERS[kind]
    source = requests.ResultRequest.parse(request.get("source"))
    fields = {name: request[name] for name in FIELDS if request.get(name) is not None}
    map_request = MapRequest.parse(fields) if "method" in fields else None
    key: Hashable = ("request", source.key, kind, map_request, fields.get("block") if map_request is None else None)
    result = _results.get(key)
    if result is not None:
        return result
    engine = get_engine()
    preset = await handlers.get_preset(source.name)
    requested = RequestedResult(engine, preset, source)
    lane = "slow" if many_passes else preset.task if map_request is None else requested.lane(map_request)

    def work() -> Json:
        _results.put(key, found := compute(requested, fields))
        return found

    return engine.jobs.submit(key, work, lane)
