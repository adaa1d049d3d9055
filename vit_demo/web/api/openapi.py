"""The endpoints as an OpenAPI document, with the JSON schemas of their results, and as a page for people."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import cache
from html import escape
from typing import Any, get_args, get_origin, get_type_hints

import gradio as gr
from PIL import Image
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from vit_demo.methods import METHODS
from vit_demo.version import __version__
from vit_demo.web.api.batch import ENDPOINTS
from vit_demo.web.api.endpoints import Picture, Pictures, defaults, describe
from vit_demo.web.api.schemas import json_schema
from vit_demo.weights import PRESETS

PICTURE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": "^data:", "description": "A data URL."},
        {
            "type": "object",
            "description": "A file that was uploaded to /gradio_api/upload.",
            "properties": {"path": {"type": "string"}, "meta": {"const": {"_type": "gradio.FileData"}}},
            "required": ["path", "meta"],
        },
    ]
}
FILE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A picture file.",
    "properties": {"path": {"type": "string"}, "url": {"type": "string"}},
    "required": ["path"],
}
VALUES: dict[str, dict[str, Any]] = {
    "method": {"enum": list(METHODS)},
    "preset": {"anyOf": [{"enum": ["", *PRESETS]}, {"pattern": "^[^/]+/[^/]+$", "description": "A repository."}]},
}
"""What some parameters may be, besides their type."""

TYPES = {str: "string", int: "integer", bool: "boolean"}

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 900px; margin: 0 auto; padding: 24px 16px 64px; }
h2 { margin: 48px 0 4px; font: 600 18px ui-monospace, monospace; }
table { border-collapse: collapse; margin: 12px 0; }
th, td { padding: 4px 16px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8884; }
code, pre { font: 13px ui-monospace, monospace; }
pre { max-height: 240px; overflow: auto; padding: 12px; border: 1px solid #8884; border-radius: 8px; }
"""


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document.

    A call starts the work and returns an ``event_id``, with which a second request waits for the result.
    """
    paths: dict[str, Any] = {}
    for function in ENDPOINTS:
        name = function.__name__
        started = {"type": "object", "properties": {"event_id": {"type": "string"}}, "required": ["event_id"]}
        paths[f"/gradio_api/call/v2/{name}"] = {
            "post": {
                "operationId": name,
                "summary": describe(function).text,
                "requestBody": {"required": True, "content": {"application/json": {"schema": parameters(function)}}},
                "responses": {"200": _response("The work has started.", "application/json", started)},
            }
        }
        paths[f"/gradio_api/call/{name}/{{event_id}}"] = {
            "get": {
                "operationId": f"{name}_result",
                "summary": f"Waits for the result of {name}.",
                "parameters": [{"name": "event_id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {
                    "200": _response(
                        "Server-sent events; the `data` of the event `complete` is JSON of the type "
                        f"#/components/schemas/{name}, that of `error` a sentence.",
                        "text/event-stream",
                        {"type": "string"},
                    )
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "vit_demo", "version": __version__, "license": {"name": "MIT"}},
        "paths": paths,
        "components": {"schemas": {function.__name__: results(function) for function in ENDPOINTS}},
    }


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON schema of an endpoint's parameters."""
    described = describe(function).parameters
    kinds = get_type_hints(function, include_extras=True)
    properties, required = {}, []
    for name, default in defaults(function).items():
        schema: dict[str, Any] = {"description": described[name]}
        if kinds[name] == Picture:
            schema |= PICTURE_SCHEMA
        elif kinds[name] == Pictures:
            schema |= {"type": "array", "items": PICTURE_SCHEMA}
        elif kinds[name] in TYPES:
            schema["type"] = TYPES[kinds[name]]
        schema |= VALUES.get(name, {})
        if default is inspect.Parameter.empty:
            required.append(name)
        else:
            schema["default"] = default
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required}


def results(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON schema of the list of an endpoint's results, of which there is one, or two for ``explain_image``."""
    returned = get_type_hints(function, include_extras=True)["return"]
    each = get_args(returned) if get_origin(returned) is tuple else (returned,)
    items = [FILE_SCHEMA if one is Image.Image else json_schema(one) for one in each]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


@cache
def page() -> str:
    """The same as HTML."""
    sections = []
    for function in ENDPOINTS:
        description, described, returned = describe(function)
        rows = [
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(described[name])}</td><td>{_default(default)}</td></tr>"
            for name, default in defaults(function).items()
        ]
        table = f"<table><tr><th>parameter</th><th></th><th>default</th></tr>{''.join(rows)}</table>" if rows else ""
        schema = json.dumps(results(function)["prefixItems"], indent=1)
        sections.append(
            f'<section id="{function.__name__}"><h2>/{function.__name__}</h2><p>{escape(description)}</p>{table}'
            f"<p>{escape(returned)}</p><details><summary>JSON schema of the result</summary>"
            f"<pre>{escape(schema)}</pre></details></section>"
        )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API of vit_demo</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        '<h1>API</h1><p>For programs: <a href="openapi.json">OpenAPI document</a>. Examples in Python, with curl and '
        'in JavaScript: <code>docs/api.md</code>. <a href="./">Back to the page</a></p>'
        f"{''.join(sections)}</body></html>"
    )


def routes(blocks: gr.Blocks) -> list[Route]:
    """The routes of both, and of Gradio's own description, which names none of the addresses of its callers.

    Args:
        blocks: The page; Gradio would keep the description that it made for the first caller.
    """

    async def send_document(_: Request) -> JSONResponse:
        return JSONResponse(document())

    async def send_page(_: Request) -> HTMLResponse:
        return HTMLResponse(page())

    async def send_info(request: Request) -> JSONResponse:
        return JSONResponse(blocks.get_api_info(all_endpoints="all_endpoints" in request.query_params))

    infos = [Route(f"/gradio_api/info{end}", send_info) for end in ("", "/")]
    return [Route("/openapi.json", send_document), Route("/api", send_page), *infos]


def _default(value: Any) -> str:
    return "" if value is inspect.Parameter.empty else f"<code>{escape(json.dumps(value))}</code>"


def _response(description: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}
