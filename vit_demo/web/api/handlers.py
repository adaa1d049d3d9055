"""What the endpoints and the page's requests share: presets of visitors, and errors that callers can read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from vit_demo.errors import InputError
from vit_demo.inference.job import Job
from vit_demo.inference.shared import get_engine
from vit_demo.web.guard.limits import EVENT_SECONDS
from vit_demo.web.guard.visitor import ask_for, is_heard
from vit_demo.weights import PRESETS, Preset

P = ParamSpec("P")
T = TypeVar("T")

INTERNAL_ERROR = "Something went wrong on the server: try another picture or a larger patch size."
"""The message for an unexpected exception, which is logged."""


def to_gradio_error(error: Exception) -> gr.Error:
    """The error that a caller gets: the message of an ``InputError``; for a bug, which is logged, a general one."""
    if isinstance(error, gr.Error):
        return error
    if isinstance(error, InputError):
        return gr.Error(str(error), print_exception=False)
    logging.getLogger(__name__).error("A request failed", exc_info=error)
    return gr.Error(INTERNAL_ERROR, print_exception=False)


def with_gradio_errors(handler: Callable[P, Any]) -> Callable[P, Any]:
    """Decorates a coroutine function so that it raises nothing but ``gr.Error``."""

    @wraps(handler)
    async def wrapper(*arguments: P.args, **options: P.kwargs) -> Any:
        ask_for()
        try:
            return await _while_heard(handler(*arguments, **options))
        except Exception as error:
            raise to_gradio_error(error) from error

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


def is_trusted(name: str) -> bool:
    """Whether a preset is in the table; a visitor's custom model gets no token and no folder of this machine."""
    return name in PRESETS


def prepare(name: str) -> Job[Preset]:
    """The job that looks up a preset for a visitor and downloads its weights."""
    return get_engine().prepare(name, lambda *_: None, trusted=is_trusted(name))


def ready(name: str) -> Preset | None:
    """A visitor's preset if it needs no download, else None."""
    return get_engine().ready(name, trusted=is_trusted(name))


async def get_preset(name: str) -> Preset:
    """A visitor's preset, downloaded if necessary.

    Raises:
        InputError: If there is no such preset, or it cannot be downloaded.
    """
    return ready(name) or await prepare(name).result_async()
