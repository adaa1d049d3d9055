"""Event handlers of the page: checked inputs in, the stage's payload out.

Handlers are coroutines that submit jobs and await them, so waiting visitors occupy no threads.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from vit_demo.errors import EmptySketchError, InputError
from vit_demo.inference.engine import get_engine
from vit_demo.inference.inputs import Source
from vit_demo.inference.jobs import Job
from vit_demo.web import requests
from vit_demo.web.payload import empty, next_run, payload
from vit_demo.weights import PRESETS, Preset

P = ParamSpec("P")
T = TypeVar("T")

PAD_PROMPT = "Draw a digit, 0 to 9, to see the model's prediction."
PHOTO_PROMPT = "Drop, paste or take a photo to see the model's prediction."
INTERNAL_ERROR = "Something went wrong on the server: try another picture or a larger patch size."


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
        try:
            return await handler(*arguments, **options)
        except Exception as error:
            raise to_gradio_error(error) from error

    return wrapper


def is_trusted(name: str) -> bool:
    """Whether a preset is in the table; a visitor's custom model gets no token and no folder of this machine."""
    return name in PRESETS


def prepare(name: str) -> Job[Preset]:
    """The job that looks up a preset for a visitor and downloads its weights."""
    return get_engine().prepare(name, lambda *_: None, trusted=is_trusted(name))


async def get_preset(name: str) -> Preset:
    """A visitor's preset, downloaded if necessary.

    Raises:
        InputError: If there is no such preset, or it cannot be downloaded.
    """
    return get_engine().ready(name, trusted=is_trusted(name)) or await prepare(name).result_async()


async def download_status(name: str) -> AsyncIterator[str]:
    """Downloads a preset and yields status messages meanwhile; yields nothing if it is on this machine already.

    Raises:
        InputError: If there is no such preset, or it cannot be downloaded.
    """
    if get_engine().ready(name, trusted=is_trusted(name)) is not None:
        return
    title = PRESETS[name].title if name in PRESETS else name
    job = prepare(name)
    while not await job.poll_async(0.5):
        size = f": {job.done / 1e6:.0f} of {job.total / 1e6:.0f} MB" if job.total else ""
        yield f"Downloading {title} from the Hub{size}"
    await job.result_async()


async def explain(drawing: Any, photo: Any, name: Any, patch_size: Any, fit: Any) -> dict[str, Any]:
    """The stage for the drawing or the photo, depending on the preset's task.

    Args:
        drawing: The pad's data URL; None or empty for an empty pad.
        photo: Gradio's file data of an upload; None if there is none.
        name: Name of the preset.
        patch_size: In pixels; None, "" or 0 for the preset's default.
        fit: One of ``inputs.FITS``.

    Raises:
        InputError: If the picture or a choice is invalid.
    """
    preset = await get_preset(requests.preset_name(name))
    is_drawing = preset.task == "digits"
    if not (drawing if is_drawing else photo):
        return empty(PAD_PROMPT if is_drawing else PHOTO_PROMPT)
    source = requests.drawing_source(drawing) if is_drawing else requests.upload_source(photo)
    try:
        return await explain_source(source, preset, name, requests.patch_size(preset, patch_size), fit)
    except EmptySketchError:
        return empty(PAD_PROMPT)


async def explain_source(source: Source, preset: Preset, name: str, patch_size: int, fit: Any) -> dict[str, Any]:
    """The stage for a picture.

    Raises:
        InputError: If the picture or the fit is invalid.
    """
    engine = get_engine()
    request = requests.ResultRequest(source, name, patch_size, requests.fit(fit))

    def work() -> dict[str, Any]:
        return payload(engine.explore_source(source, preset, patch_size, request.fit), request)

    stage = await engine.jobs.run_async(("payload", request.key), work, preset.task)
    return {**stage, "run": next_run()}  # several visitors may share the job, but not its run


async def explain_or_message(drawing: Any, photo: Any, name: Any, patch_size: Any, fit: Any) -> dict[str, Any]:
    """Like ``explain``, but shows an error on the stage instead of raising it, so that other outputs still update."""
    try:
        return await explain(drawing, photo, name, patch_size, fit)
    except Exception as error:
        return empty(str(to_gradio_error(error).message))
