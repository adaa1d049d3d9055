"""The list of endpoints, and the one that runs another of them on several pictures in one call."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from vit_demo.errors import BusyError, ImageError, InputError
from vit_demo.inference.job import owner
from vit_demo.web.api.analysis import drop_patches, explain_image, faithfulness, logit_lens
from vit_demo.web.api.endpoints import Pictures, defaults
from vit_demo.web.api.explain import explain, labels, methods, overlay, predict, presets
from vit_demo.web.api.features import kmeans, norms, pca, similarity
from vit_demo.web.api.handlers import with_gradio_errors
from vit_demo.web.api.schemas import BatchEntry
from vit_demo.web.guard import uploads
from vit_demo.web.guard.limits import (
    BATCH_CALLS,
    BATCH_CALLS_OF_ONE,
    BATCH_SECONDS,
    BATCH_WORKERS,
    MAX_BATCH_BYTES,
    MAX_BATCH_PICTURES,
)
from vit_demo.web.requests import parse as requests

BATCHED: dict[str, Callable[..., Awaitable[Any]]] = {
    function.__name__: function
    for function in (predict, explain, logit_lens, drop_patches, faithfulness, similarity, pca, kmeans, norms)
}
"""The endpoints that return numbers about one picture, by name."""

_running: Counter[str] = Counter()
"""Calls under way by who asked."""


@with_gradio_errors
async def batch(images: Pictures, endpoint: str = "predict", arguments: Any = None) -> list[BatchEntry]:
    """Runs another endpoint on several pictures in one call; a picture that fails does not stop the others.

    Args:
        images: The pictures, at most 64 of 100 MB together; those not started within five minutes are refused.
        endpoint: Name of the endpoint: predict, explain, logit_lens, drop_patches, faithfulness, similarity, pca,
            kmeans or norms.
        arguments: The other parameters of that endpoint by name, as a JSON object; defaults for those left out.

    Returns:
        For each picture, in order, {"result": what the endpoint returns} or {"error": one sentence}.
    """
    name = requests.short_string(endpoint, "endpoint").removeprefix("/")
    if name not in BATCHED:
        raise InputError(f"There is no endpoint {name!r} for batches: choose one of {', '.join(BATCHED)}.")
    function = BATCHED[name]
    given = _arguments(function, arguments)
    pictures = _pictures(images)
    turn, deadline = asyncio.Semaphore(BATCH_WORKERS), time.monotonic() + BATCH_SECONDS

    async def run(picture: Any) -> BatchEntry:
        async with turn:
            if time.monotonic() > deadline:
                return {"error": f"The call has taken {BATCH_SECONDS:.0f} seconds: send this picture in another one."}
            try:
                return {"result": await function(picture, **given)}
            except gr.Error as error:
                return {"error": str(error.message)}

    # Refused and not queued, because Gradio's queue is that of all endpoints.
    who = owner.get()
    if _running[who] >= BATCH_CALLS_OF_ONE or _running.total() >= BATCH_CALLS:
        raise BusyError("Other batches are being worked on: try again in a moment.")
    _running[who] += 1
    try:
        return list(await asyncio.gather(*map(run, pictures)))
    finally:
        _running[who] -= 1


def _pictures(images: Any) -> list[Any]:
    """The pictures of a call.

    Raises:
        ImageError: If there are none, or too many.
    """
    pictures = images if isinstance(images, list) else []
    if not 0 < len(pictures) <= MAX_BATCH_PICTURES:
        raise ImageError(f"Send 1 to {MAX_BATCH_PICTURES} pictures as a list.")
    if sum(map(_num_bytes, pictures)) > MAX_BATCH_BYTES:
        raise ImageError(f"The pictures have more than {MAX_BATCH_BYTES // 10**6} MB together: send fewer at once.")
    return pictures


def _num_bytes(picture: Any) -> int:
    """The size of an upload; 0 for anything else, which is bounded or refused elsewhere."""
    if isinstance(picture, str) and picture.startswith("data:"):
        return 0
    try:
        return uploads.find(picture).stat().st_size
    except (ImageError, OSError):
        return 0


def _arguments(function: Callable[..., Any], value: Any) -> dict[str, Any]:
    """The parameters of an endpoint beside the picture.

    Raises:
        InputError: If it is not an object of them.
    """
    if value is not None and not isinstance(value, dict):
        raise InputError("The arguments must be a JSON object of parameters by name.")
    given = value or {}
    known = [name for name in defaults(function) if name != "image"]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InputError(f"{function.__name__} has no parameter {unknown[0]!r}: choose from {', '.join(known)}.")
    return given


ENDPOINTS: tuple[Callable[..., Any], ...] = (
    presets, labels, methods, predict, explain, overlay, explain_image, logit_lens, drop_patches, faithfulness,
    similarity, pca, kmeans, norms, batch,
)  # fmt: skip
"""Every endpoint of the page, in the order of the documentation."""
