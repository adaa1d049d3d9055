"""Makes an endpoint of a function: parameters and defaults from its signature, the result's schema from its type."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import gradio as gr
from gradio.components import Component
from PIL import Image

from vit_demo.web.frontend.picture_parameter import picture_parameter, pictures_parameter
from vit_demo.web.results import json_schema

REQUIRED: Any = inspect.Parameter.empty
"""The default of a parameter that has none, but follows others that have one."""

Picture = Annotated[Any, "picture"]
"""A parameter that is an uploaded file or a data URL."""

Pictures = Annotated[Any, "pictures"]
"""A parameter that is a list of them."""


def add_endpoints(functions: Sequence[Callable[..., Any]]) -> None:
    """Adds endpoints to the page that is being built; each has the name of its function.

    Their parameters and results are components that are never shown, because only for components does Gradio check that
    the caller uploaded a file. Equal parameters share one component.

    Args:
        functions: Their parameters are annotated ``Picture``, ``Pictures``, ``str``, ``int``, ``bool`` or ``Any``, and
            their results with a type of ``results``, an image, or a tuple of these.
    """
    parameters: dict[tuple[str, Any, str], Component] = {}
    for function in functions:
        kinds = get_type_hints(function, include_extras=True)
        returned = kinds["return"]
        inputs = []
        for name, default in defaults(function).items():
            key = name, kinds[name], repr(default)
            if key not in parameters:
                parameters[key] = _parameter(name, kinds[name], default)
            inputs.append(parameters[key])
        outputs = [_result(one) for one in (get_args(returned) if get_origin(returned) is tuple else (returned,))]
        gr.Button(visible=False).click(
            function, inputs, outputs, api_name=function.__name__, concurrency_limit=None, preprocess=False
        )


class Description(NamedTuple):
    """What the docstring of an endpoint says; Gradio would keep the first line of each parameter's text."""

    text: str
    parameters: dict[str, str]
    returns: str


def describe(function: Callable[..., Any]) -> Description:
    """Reads a docstring in Google's style, with the lines of each text joined."""
    text, _, rest = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    arguments, _, returns = rest.partition("\n\nReturns:\n")
    if not rest:
        text, _, returns = text.partition("\n\nReturns:\n")
    found = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", arguments, re.MULTILINE)
    return Description(_joined(text), {name: _joined(words) for name, words in found}, _joined(returns))


def _joined(lines: str) -> str:
    return " ".join(lines.split())


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of an endpoint's function with their defaults, ``inspect.Parameter.empty`` for those without."""
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def _parameter(name: str, kind: Any, default: Any) -> Component:
    default = None if default is inspect.Parameter.empty else default
    if kind == Picture:
        return picture_parameter(name)
    if kind == Pictures:
        return pictures_parameter(name)
    if kind is str:
        return gr.Textbox(default, visible=False, label=name)
    if kind is bool:
        return gr.Checkbox(default, visible=False, label=name)
    if kind is int:
        return gr.Number(default, precision=0, visible=False, label=name)
    return gr.JSON(default, visible=False, label=name)


def _result(kind: Any) -> Component:
    if kind is Image.Image:
        return gr.Image(visible=False, label="picture", format="png")
    component = gr.JSON(visible=False, label="result")
    schema = json_schema(kind)
    component.api_info = lambda: schema  # type: ignore[method-assign]
    return component
