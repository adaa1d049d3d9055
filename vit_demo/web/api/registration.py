"""Turns functions into endpoints: the signature gives the parameters and defaults, the type of the result its schema.

The work of an endpoint runs as a job, and its errors are written for callers.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import gradio as gr
from gradio.components import Component
from gradio.data_classes import FileData, GradioRootModel
from PIL import Image
from pydantic import TypeAdapter

from vit_demo.defaults import WORDS_PRESET
from vit_demo.errors import ImageError, InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.inputs import default_preset
from vit_demo.methods import find_method
from vit_demo.service.engine import Engine, get_engine
from vit_demo.service.source import Source
from vit_demo.web.api.parameters import FILE, PatchSize, Picture, PresetName, Words
from vit_demo.web.api.schemas import json_schema
from vit_demo.web.catalog.visitor_presets import get_preset
from vit_demo.web.guard.visitor import is_awaited, set_owner, wait_for_stream
from vit_demo.web.requests import parse
from vit_demo.web.requests.packing import message_of
from vit_demo.weights import DEFAULT_PRESETS, PRESETS, Preset, costs

NOBODY = "Nobody waited for this result: open its stream, and keep it open."
EVENT_SECONDS = 900.0  # longest time of an event

P = ParamSpec("P")
T = TypeVar("T")

ENDPOINTS: list[Callable[..., Any]] = []  # in the order of the documentation

REQUIRED: Any = inspect.Parameter.empty  # the default of a required parameter, which lets it follow optional ones

ABOUT_A_PICTURE = {"image": (Picture, REQUIRED), "preset": (PresetName, ""), "patch_size": (PatchSize, 0)}
"""The first parameters of every endpoint about a picture, with their defaults."""
WORDS = {"words": (Words, "")}  # the last parameter of those that read words

COMPONENTS: dict[Any, Callable[..., Component]] = {
    str: gr.Textbox,
    int: partial(gr.Number, precision=0),
    bool: gr.Checkbox,
}


class PictureData(GradioRootModel):
    """A picture as callers send it: a data URL, or the description that Gradio's upload gives a file."""

    root: FileData | str


def with_gradio_errors(handler: Callable[P, Any]) -> Callable[P, Any]:
    """Decorates a coroutine function to raise only ``gr.Error``, and to end when nobody waits for its result."""

    @wraps(handler)
    async def wrapper(*arguments: P.args, **options: P.kwargs) -> Any:
        set_owner()
        try:
            return await _while_awaited(handler(*arguments, **options))
        except gr.Error:
            raise
        except Exception as error:
            raise gr.Error(message_of(error), print_exception=False) from error

    return wrapper


async def _while_awaited(work: Coroutine[Any, Any, T]) -> T:
    """Awaits the result of an event; cancels it with ``InputError`` if nobody waits or it takes too long."""
    task, started = asyncio.ensure_future(work), time.monotonic()
    try:
        while not (await asyncio.wait([task], timeout=1.0))[0]:
            if not is_awaited(started):
                raise InputError(NOBODY)
            if time.monotonic() - started > EVENT_SECONDS:
                raise InputError(
                    "This took more than {0} seconds: choose a smaller model or picture.", f"{EVENT_SECONDS:.0f}"
                )
        if not await wait_for_stream():
            raise InputError(NOBODY)
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
    async def parse(cls, image: Any, preset: Any, patch_size: Any, words: tuple[str, ...]) -> Call:
        """Checks what was sent, and downloads the preset if necessary; by default the picture decides which."""
        if not image:
            raise ImageError("There is no picture: send a picture file as `image`.")
        source, engine = parse.image_source(image), get_engine()
        preset = WORDS_PRESET if words and not preset else preset
        if preset in (None, ""):
            pool = source.pool(PRESETS[DEFAULT_PRESETS["photos"]])
            picture = await engine.jobs.run_async(None, source.read, pool)
            source, preset = replace(source, read=lambda: picture, is_decoded=None), default_preset(picture)
        chosen = await get_preset(parse.preset_name(preset))
        chosen = chosen.with_words(words) if words else chosen
        return cls(engine, source, chosen, parse.patch_size(chosen, patch_size))

    def explore(self, source: Source | None = None) -> Exploration:
        """Computes the result, or that of another picture; to be called within a job."""
        return self.engine.explore_source(source or self.source, self.preset, self.patch_size)

    async def run(self, work: Callable[[], T], *, slow: bool = False) -> T:
        """Runs work as a job; ``slow`` if it takes many passes."""
        turn = self.source.turn(self.preset, self.patch_size, costs.many_passes if slow else costs.backward)
        return await self.engine.jobs.run_async(None, work, *turn)


def endpoint(
    function: Callable[..., Any] | None = None, *, slow: bool = False, like: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Decorates the function that computes an endpoint; the types of its parameters are those of ``parameters``.

    If the first parameter is ``result``, callers send ``ABOUT_A_PICTURE`` in its place and ``WORDS`` at the end, and
    the function runs in a job with an ``Exploration``; a parameter ``other`` is the result of a second picture in the
    same model.

    Args:
        function: The function; its docstring is for callers.
        slow: Whether it takes many passes with any method.
        like: A function with the same parameters, if its own are not annotated.

    Returns:
        A coroutine function that checks what callers send, and raises only ``gr.Error``.
    """
    if function is None:
        return partial(endpoint, slow=slow, like=like)
    like = like or function
    hints = get_type_hints(like, include_extras=True) | {"return": get_type_hints(function)["return"]}
    declared = {name: (hints[name], own.default) for name, own in inspect.signature(like).parameters.items()}
    if is_about_picture := declared.pop("result", None) is not None:
        declared = ABOUT_A_PICTURE | declared | WORDS

    @with_gradio_errors
    async def call(*values: Any, **named: Any) -> Any:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        checked = {name: parse.checked(declared[name][0], value) for name, value in bound.arguments.items()}
        if not is_about_picture:
            return await function(**checked) if inspect.iscoroutinefunction(function) else function(**checked)
        sent = await Call.parse(*(checked.pop(name) for name in (*ABOUT_A_PICTURE, *WORDS)))

        def work() -> Any:
            if checked.get("other"):
                checked["other"] = sent.explore(checked["other"])
            return function(sent.explore(), **checked)

        return await sent.run(work, slow=slow or ("method" in checked and find_method(checked["method"]).is_slow))

    signature = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
            for name, (kind, default) in declared.items()
        ],
        return_annotation=hints["return"],
        __validate_parameters__=False,  # a required parameter may follow the optional ones of ABOUT_A_PICTURE
    )
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__name__, call.__doc__ = function.__name__, function.__doc__
    ENDPOINTS.append(call)
    return call


def add_endpoints(functions: Sequence[Callable[..., Any]]) -> None:
    """Adds endpoints to the page that is being built, named as their functions.

    Their parameters and results are hidden components, unlike those of ``gr.api``, because only for components does
    Gradio check that the caller uploaded a file. Equal parameters share a component.
    """
    components: dict[str, Component] = {}
    for function in functions:
        signature = inspect.signature(function)
        inputs = []
        for name, declared in signature.parameters.items():
            kind, default = declared.annotation, None if declared.default is REQUIRED else declared.default
            schema = TypeAdapter(kind).json_schema() | ({} if default is None else {"default": default})
            key = json.dumps([name, schema])
            if key not in components:
                components[key] = _input(name, get_args(kind)[0], default, schema)
            inputs.append(components[key])
        returned = signature.return_annotation
        outputs = [_output(kind) for kind in (get_args(returned) if get_origin(returned) is tuple else (returned,))]
        gr.Button(visible=False).click(
            function,
            inputs,
            outputs,
            api_name=function.__name__,
            api_description=" ".join((inspect.getdoc(function) or "").split()),
            concurrency_limit=None,
            preprocess=False,
        )


def _input(name: str, kind: Any, default: Any, schema: dict[str, Any]) -> Component:
    component: Component
    if schema.get("title") == FILE["title"]:
        schema = FILE | schema
        component = gr.File(label=name, type="filepath", visible=False)
        component.data_model = PictureData  # not in a subclass, which would need a component of its own in the browser
    else:
        kind = next((part for part in (kind, *get_args(kind)) if part in COMPONENTS), kind)  # `str` for `str | None`
        component = COMPONENTS.get(kind, gr.JSON)(default, visible=False, label=name)
    component.api_info = lambda: schema  # type: ignore[method-assign]
    return component


def _output(kind: Any) -> Component:
    if kind is Image.Image:
        return gr.Image(visible=False, label="picture", format="png")
    component = gr.JSON(visible=False, label="result")
    schema = json_schema(kind)
    component.api_info = lambda: schema  # type: ignore[method-assign]
    return component
