"""What happens when a person does something: checked choices in, numbers for the stage out.

Each handler only submits jobs and waits for them without occupying a thread, so that however many visitors wait, the
next one is heard.
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

EMPTY_PAD = "Draw a digit, 0 to 9, to see the model's prediction."
EMPTY_PHOTO = "Drop, paste or take a photo to see the model's prediction."
FAILED = "Something went wrong on the server, and was logged: try another picture or a larger patch size."


def error_of(error: Exception) -> gr.Error:
    """What a caller is told: the sentence of an ``InputError``; of a bug, which is logged, only that there was one."""
    if isinstance(error, gr.Error):
        return error
    if isinstance(error, InputError):
        return gr.Error(str(error), print_exception=False)
    logging.getLogger(__name__).error("A request failed", exc_info=error)
    return gr.Error(FAILED, print_exception=False)


def in_words(handler: Callable[P, Any]) -> Callable[P, Any]:
    """Makes a coroutine function raise only ``gr.Error``, each with one sentence."""

    @wraps(handler)
    async def answer(*arguments: P.args, **options: P.kwargs) -> Any:
        try:
            return await handler(*arguments, **options)
        except Exception as error:
            raise error_of(error) from error

    return answer


def is_trusted(name: str) -> bool:
    """Whether a preset is one of ours; visitors' own get no token and no folder of this machine."""
    return name in PRESETS


def prepare(name: str) -> Job[Preset]:
    """The job that looks a preset up and fetches its weights, for a visitor."""
    return get_engine().prepare(name, lambda *_: None, trusted=is_trusted(name))


async def preset_of(name: str) -> Preset:
    """A preset that a visitor has named, fetched if need be.

    Raises:
        InputError: If it cannot be had.
    """
    return get_engine().ready(name, trusted=is_trusted(name)) or await prepare(name).result_async()


async def fetching(name: str) -> AsyncIterator[str]:
    """Says how far it is while a preset is fetched; nothing where it is there already.

    Raises:
        InputError: If it cannot be had.
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
    """The stage for the drawing or the photo, whichever the preset is made for.

    Args:
        drawing: The pad's data URL; nothing for an empty pad.
        photo: Gradio's description of an upload; nothing where there is none.
        name: Of the preset.
        patch_size: In pixels; the preset's default for 0 and nothing.
        fit: One of ``inputs.FITS``.

    Raises:
        InputError: If the picture or a choice cannot be used.
    """
    preset = await preset_of(requests.preset_name(name))
    drawn = preset.task == "digits"
    if not (drawing if drawn else photo):
        return empty(EMPTY_PAD if drawn else EMPTY_PHOTO)
    source = requests.drawing_source(drawing) if drawn else requests.upload_source(photo)
    try:
        return await show(source, preset, name, requests.check_size(preset, patch_size), fit)
    except EmptySketchError:
        return empty(EMPTY_PAD)


async def show(source: Source, preset: Preset, name: str, patch_size: int, fit: Any) -> dict[str, Any]:
    """What the stage shows of a picture.

    Raises:
        InputError: If it cannot be used.
    """
    engine = get_engine()
    request = requests.ResultRequest(source, name, patch_size, requests.fit_of(fit))

    def work() -> dict[str, Any]:
        return payload(engine.explore_source(source, preset, patch_size, request.fit), request)

    shown = await engine.jobs.run_async(("payload", request.key), work, preset.task)
    return {**shown, "run": next_run()}  # for what was computed for several visitors at once


async def explain_anyway(drawing: Any, photo: Any, name: Any, patch_size: Any, fit: Any) -> dict[str, Any]:
    """As ``explain``, but what cannot be used is said on the stage, so that other choices still apply."""
    try:
        return await explain(drawing, photo, name, patch_size, fit)
    except Exception as error:
        return empty(str(error_of(error).message))
