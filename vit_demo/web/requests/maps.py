"""Requests of the page for a result, and for a map of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from vit_demo.defaults import DIRECTIONS, Direction
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.sequence import check_patch
from vit_demo.methods import find_method
from vit_demo.service.engine import Engine
from vit_demo.service.together import Drawing
from vit_demo.web.guard.metrics import cache_bytes
from vit_demo.web.requests import parse
from vit_demo.weights import Preset

MAP_CACHE_BYTES = 16 << 20  # size of the cache of maps, which the tests of a heatmap read again

_maps: ByteCache[NDArray[np.float32]] = ByteCache(MAP_CACHE_BYTES, lambda values: values.nbytes)
cache_bytes.labels("maps").set_function(lambda: _maps.num_bytes)


NO_DIRECTION = 'There is no such direction: choose "from" or "to".'


def _head(value: Any) -> int | None:
    head = parse.integer(value, "head", -1)
    return None if head == -1 else head


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
        against: Index of the class to compare it with, or None.
    """

    method: parse.MethodName
    block: Annotated[int, parse.whole_number("block", -1)] = -1
    head: Annotated[int | None, BeforeValidator(_head)] = None
    query: parse.Query = None
    direction: Annotated[Direction, parse.one_of(DIRECTIONS, NO_DIRECTION)] = "from"
    label: parse.Label = None
    against: parse.Against = None

    @property
    def is_slow(self) -> bool:
        """Whether it takes many passes."""
        return find_method(self.method).is_slow

    def options(self, result: Exploration) -> dict[str, Any]:
        """The options of ``Exploration.heatmap``: those that the method has."""
        query = None if self.query is None else divmod(self.query, result.grid[1])
        options = {"block": self.block, "head": self.head, "query": query, "direction": self.direction}
        method = find_method(self.method)
        options = {name: value for name, value in options.items() if method.offers(name)}
        return options | ({"label": self.label, "against": self.compared} if method.class_specific else {})

    @property
    def compared(self) -> int | None:
        """The class that ``label`` is compared with, if the method compares two."""
        return self.against if find_method(self.method).compares_classes else None


@dataclass(frozen=True)
class RequestedResult:
    """The result that a request is about; one that is ``live`` is not kept."""

    engine: Engine
    preset: Preset
    request: parse.ResultRequest
    drawing: Drawing | None = None
    live: bool = False

    def explore(self) -> Exploration:
        """Gets the result from the cache, or computes it."""
        request = self.request
        size = self.preset.check_patch_size(request.patch_size)
        explore = partial(self.engine.explore_source, request.source, self.preset, size, request.fit)
        whole = explore(drawing=self.drawing, keep=bool(request.dropped or request.silent) or not self.live)
        if not request.dropped and not request.silent:
            return whole
        dropped = tuple(check_patch(whole.grid, divmod(patch, whole.grid[1])) for patch in request.dropped)
        return explore(dropped, tuple(request.silent), keep=not self.live)

    def map_values(self, request: MapRequest) -> NDArray[np.float32]:
        """Computes a map, or gets it from the cache: a map that is tested was usually shown before."""

        def compute() -> NDArray[np.float32]:
            result = self.explore()
            return result.heatmap(request.method, **request.options(result))

        pool = self.request.source.pool(self.preset, slow=request.is_slow)
        return self.engine.cached(_maps, ("map", self.request.key, request), compute, pool)
