"""A result in a notebook: the stage of the page as HTML that needs no server. Does not import Gradio."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from html import escape
from typing import Any

from vit_demo.defaults import NUM_CLASSES
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.forward import MOST_EARLY
from vit_demo.methods import METHODS, Method
from vit_demo.web.catalog.method_docs import method_html
from vit_demo.web.frontend.assets import OFFLINE_VIEWS, VIEWS, bundle, read, sources, stage_styles
from vit_demo.web.frontend.constants import constants, method_entries
from vit_demo.web.notebook.static import HERE, colours
from vit_demo.web.requests.payload import block_payload, encode, payload

START = "stage/main.js"


MAX_BYTES = 360_000  # largest size of the HTML; if not all traces fit, those of the last blocks are included

MAX_PARAMETERS = 10_000_000  # maps that need a pass are computed only for smaller networks: no notebook waits long
IN_BROWSER = ("attention", "rollout")  # the methods that the stage computes from the trace

FRAME = (
    '<iframe title="vit_demo" sandbox="allow-scripts" style="width: 100%; height: 700px; border: 0" srcdoc="{}">'
    "</iframe>"
)


def to_html(result: Exploration) -> str:
    """The stage of the page with this result, in a frame that makes no request and cannot reach the notebook."""
    return FRAME.format(escape(document(result)))


def _num_classes(result: Exploration) -> int:
    """All classes where there are few, which have their places on the stage; else the first ones."""
    return len(result.labels) if len(result.labels) <= MOST_EARLY else NUM_CLASSES


def document(result: Exploration, above: str = "", max_bytes: int = MAX_BYTES) -> str:
    """The frame's document, with HTML above the stage and the traces of as many blocks as ``max_bytes`` allows."""
    content: dict[str, Any] = {
        "script": script(),
        "style": f"#stage {{\n{stage_styles(OFFLINE_VIEWS)}\n}}",
        "start": START,
        "value": {**payload(result, num_classes=_num_classes(result)), "run": "1", "trace": {}},
        "replies": dict(_replies(result)),
        "constants": {
            "constants": constants(),
            "registered": method_entries(_offered(result)),
            "viewNames": OFFLINE_VIEWS,
        },
    }
    room = (max_bytes - len(FRAME.format(escape(_page(content, above))).encode())) * 3 // 4  # base64
    for block in reversed(range(result.trace.num_blocks)):
        trace = block_payload(result, block)
        room -= len(gzip.compress(json.dumps(trace).encode(), 6))
        if room < 0:
            break
        content["value"]["trace"][str(block)] = trace
    # Compressed together they may take some bytes more than one by one.
    while len(FRAME.format(escape(page := _page(content, above))).encode()) > max_bytes and content["value"]["trace"]:
        content["value"]["trace"].popitem()
    return page


def _offered(result: Exploration) -> list[Method]:
    """The methods whose maps the browser computes, or that are quick enough to compute in advance."""
    is_small = result.preset.num_parameters <= MAX_PARAMETERS
    return [
        method
        for method in METHODS.values()
        if (result.labels or not method.class_specific)
        and (method.cost == "trace" or (is_small and not method.is_slow))
    ]


def _replies(result: Exploration) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server's replies by request: maps of the shown classes or of each block, and documentation."""
    for method in _offered(result):
        with suppress(InputError):  # the installation has no documents
            yield _key(kind="method_docs", method=method.name), {"result": {"html": method_html(method.name)}}
        if method.name in IN_BROWSER:
            continue
        fields: list[dict[str, int]] = [{}]
        if method.class_specific:
            fields = [{"label": result.labels.index(label)} for label, _ in result.top()]
        elif method.offers("block"):
            fields = [{"block": block} for block in range(result.trace.num_blocks)]
        for chosen in fields:
            options: dict[str, Any] = {"block": chosen["block"]} if "block" in chosen else {}
            try:
                reply: dict[str, Any] = {
                    "result": {"map": encode(result.heatmap(method.name, chosen.get("label"), **options))}
                }
            except InputError as error:  # not every method knows every network
                reply = {"error": str(error)}
            yield _key(kind="map", method=method.name, **chosen), reply


def _key(**fields: Any) -> str:
    """The key of a request; ``keyOf`` in start.js computes the same."""
    return json.dumps(sorted(fields.items()), separators=(",", ":"))


def _page(content: dict[str, Any], above: str) -> str:
    packed = gzip.compress(json.dumps(content).encode(), 9, mtime=0)
    page = _read("page.html")
    for name, text in {
        "STYLE": colours() + _read("notebook.css"),
        "STAGE": re.sub(r"\n\s+", "\n", read("stage/stage.html")),  # a notebook keeps every byte of it
        "SCRIPT": _read("start.js"),
        "BUNDLE": base64.b64encode(packed).decode("ascii"),
        "ABOVE": above,  # last, because it may hold any of these names
    }.items():
        page = page.replace(name, text, 1)
    return page


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """A module with the stage, these views and all that they import."""
    others = tuple(f"stage/views/{name}/" for name in VIEWS if name not in OFFLINE_VIEWS)
    return bundle({path: source for path, source in sources().items() if not path.startswith(others)}, [START])
