"""A call of an endpoint: its picture and model, its work as a job, and errors that callers can read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from vit_demo.errors import ImageError, InputError
from vit_demo.inference.engine import Engine, get_engine
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.inputs import Source, default_preset
from vit_demo.inference.limits import job_bytes
from vit_demo.web.catalog.visitor_presets import get_preset
from vit_demo.web.guard.limits import EVENT_SECONDS
from vit_demo.web.guard.visitor import ask_for, is_heard
from vit_demo.web.requests import parse
from vit_demo.web.requests.errors import message_of
from vit_demo.weights import DEFAULT_PRESETS, PRESETS, Preset

P = ParamSpec("P")
T = TypeVar("T")


def with_gradio_errors(handler: Callable[P, Any]) -> Callable[P, Any]:
    """Decorates a coroutine function so that it raises nothing but ``gr.Error``, and ends when nobody waits for it."""

    @wraps(handler)
    async def wrapper(*arguments: P.args, **options: P.kwargs) -> Any:
        ask_for()
        try:
            return await _while_heard(handler(*arguments, **options))
        except gr.Error:
            raise
        except Exception as error:
            raise gr.Error(message_of(error), print_exception=False) from error

    return wrapper


async def _while_heard(work: Coroutine[Any, Any, T]) -> T:
    """Awaits the result of an event, and cancels its work as soon as nobody waits for it.

    Raises:
        InputError: If it is cancelled, or takes too long.
    """
    task, started = asyncio.ensure_future(work), time.monotonic()
    try:
        while not (await asyncio.wait([task], timeout=1.0))[0]:
            if not is_heard(started):
                raise InputError("Nobody waited for this result: open its stream, and keep it open.")
            if time.monotonic() - started > EVENT_SECONDS:
                raise InputError(f"This took more than {EVENT_SECONDS:.0f} seconds: choose a smaller model or picture.")
        return task.result()
    finally:
        task.cancel()


@dataclass(frozen=True)
class Call:
    """The checked picture, preset and patch size of a call."""

    engine: Engine
    source: Source
    preset: Preset
    patch_size: int

    @classmethod
    async def parse(cls, image: Any, preset: Any, patch_size: Any) -> Call:
        """Checks what was sent, and fetches the preset if need be; without one the picture decides."""
        if not image:
            raise ImageError("There is no picture: send a picture file as `image`.")
        source, engine = parse.image_source(image), get_engine()
        if preset in (None, ""):
            pool = source.pool(PRESETS[DEFAULT_PRESETS["photos"]])
            picture = await engine.jobs.run_async(None, source.read, pool)
            source, preset = replace(source, read=lambda: picture, is_decoded=None), default_preset(picture)
        found = await get_preset(parse.preset_name(preset))
        return cls(engine, source, found, parse.patch_size(found, patch_size))

    def explore(self, source: Source | None = None) -> Exploration:
        """The result, or that of another picture, within a job."""
        return self.engine.explore_source(source or self.source, self.preset, self.patch_size)

    async def run(self, work: Callable[[], T], *, slow: bool = False) -> T:
        """Runs something as a job of its own; ``slow`` if it takes many passes."""
        pool = "slow" if slow else self.source.pool(self.preset)
        return await self.engine.jobs.run_async(None, work, pool, job_bytes(self.preset, self.patch_size, slow=slow))
