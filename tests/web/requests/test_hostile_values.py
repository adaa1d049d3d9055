"""What each settable value of a request may be: a table, from which hostile values are made.

A field of a request, or a parameter of an endpoint, without a row fails, so that none comes without its attack.
"""

import inspect
import json
import logging
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import gradio as gr
import pytest

from benchmarks import heaviest
from vit_demo.errors import InputError
from vit_demo.model import ViTConfig
from vit_demo.training.small import Choices
from vit_demo.web.api import ENDPOINTS
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import log
from vit_demo.web.requests import parse, poll
from vit_demo.web.requests.kinds import KINDS, RequestKind
from vit_demo.web.requests.packing import INTERNAL_ERROR
from vit_demo.web.requests.payload import data_url

from ...asynchronous import run
from ...asynchronous import until as wait_until
from ..http_requests import ask
from .test_any_request import is_a_sentence

LONG = "x" * 20_000
DEEP: Any = 1
for _ in range(90):
    DEEP = [DEEP]
NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty", "__class__", "__init__"]
MARKS = ["\u202ea\u202c", "\u2066a\u2069", "\u200f", "\ud800", "\ufffe", "\0", "a\nb", "\u2028", "\x1b[2J"]
OTHER_KINDS: list[Any] = [True, [], {}, [[]], DEEP, {"__proto__": 1}, {"path": "/etc/passwd"}]

HOSTILE: dict[str, list[Any]] = {
    "number": [
        *("007", "-01", "0x10", "1_000", "1e3", "١٢", "²", "1.5", " 1", "", "-", "9" * 20_000, "NaN", LONG),
        *(math.nan, math.inf, -math.inf, -1e9, 1.5, 2**63, 10**30, *NAMES, *OTHER_KINDS),
    ],
    "text": [LONG, *MARKS, *NAMES, "../../etc/passwd", "/etc/passwd", "a" * 299, 5, math.nan, *OTHER_KINDS],
    "list": [LONG, "1", 7, list(range(20_001)), [[1]] * 50, [None], [math.nan], ["007"], [-1], *OTHER_KINDS, *NAMES],
    "file": [
        *(LONG, "/etc/passwd", "file:///etc/passwd", "http://127.0.0.1/", "data:image/png;base64,AAAA", "data:,x"),
        *(f"data:image/png;base64,{LONG}", *MARKS, *NAMES, 5, math.nan, *OTHER_KINDS),
    ],
    "object": [LONG, 5, math.nan, *NAMES, *OTHER_KINDS],
    "yes or no": [LONG, 5, math.nan, *NAMES, *OTHER_KINDS],
}
"""Of each sort, what it may hardly be; a reply may still be a result, for instance of a class that has such a name."""

SORTS: dict[str, str] = {
    # of results and of what is asked about them
    **dict.fromkeys(("drawing", "digit", "example", "upload", "frame", "image"), "file"),
    **dict.fromkeys(("source", "other", "begin", "config"), "object"),
    **dict.fromkeys(
        ("kind", "preset", "fit", "words", "method", "direction", "baseline", "wanted", "name", "live"), "text"
    ),
    **dict.fromkeys(("patch_size", "block", "head", "query", "label", "against", "order", "row", "col", "k"), "number"),
    **dict.fromkeys(("dropped", "without", "silent", "patches", "classes", "examples"), "list"),
    **dict.fromkeys(("remove_background",), "yes or no"),
    # of teaching and training
    **dict.fromkeys(("taught", "run", "download", "from"), "text"),
    **dict.fromkeys(("seconds", "steps", "learning_rate", "num_digits", "seed"), "number"),
    **dict.fromkeys(("cancel", "shuffle_labels"), "yes or no"),
    # of a network
    **dict.fromkeys(("image_size", "in_channels", "num_classes", "embed_dim", "depth", "num_heads"), "number"),
    **dict.fromkeys(("mlp_ratio", "num_registers", "pos_embed_grid", "layer_scale", "dropout", "drop_path"), "number"),
    **dict.fromkeys(("norm_eps", "pos_embed_side"), "number"),
    **dict.fromkeys(("pos_embed", "projection", "pool", "activation"), "text"),
    **dict.fromkeys(
        ("class_token", "pos_embed_prefix", "qkv_bias", "final_norm", "pre_norm", "no_embed_class"), "yes or no"
    ),
}
"""The sort of each field or parameter, by its name."""

Path = tuple[str | int, ...]


def light(kind: str) -> dict[str, Any]:
    """A lawful request that costs little."""
    sent = {"kind": kind, **deepcopy(heaviest.KINDS[kind](7))}
    if isinstance(KINDS[kind], RequestKind):
        sent["source"] = {"example": "digit-3", "preset": "digits-tiny", "patch_size": 14, "fit": "crop", "dropped": []}
    cheap = {"method": "rollout", "query": 1, "without": [], "block": 1, "head": 0}
    sent |= {name: value for name, value in cheap.items() if name in sent and kind != "method_docs"}
    if kind == "tokens":
        sent["other"] = {"example": "digit-4"}
    if kind == "teach":
        one = [{"name": name, "examples": [{"example": f"digit-{name}"}]} for name in "34"]
        sent |= {"preset": "digits-tiny", "patch_size": 14, "classes": one}
    if kind == "train":
        sent["begin"] |= {"steps": 1, "num_digits": 10, "learning_rate": 0.001, "shuffle_labels": False}
        sent["begin"]["config"] |= {"patch_size": 14, "embed_dim": 16, "depth": 1, "num_heads": 2}
        sent |= {"source": {"example": "digit-3"}}
    return sent


def fields_of(kind: str) -> set[Path]:
    """Every place in a request of a kind at which something may stand."""
    found: set[Path] = {("kind",)}
    about = KINDS[kind].fields
    if is_dataclass(about):
        found |= {(field.name,) for field in fields(about)}
    if isinstance(KINDS[kind], RequestKind):
        found |= {("source",)}
    if kind == "result":  # one function reads the source for every kind
        own = {field.name for field in fields(parse.ResultRequest)} - {"source"}
        found |= {("live",), *(("source", name) for name in own | {"frame"} | parse.PICTURE_FIELDS.keys())}
    if kind == "tokens":
        found |= {("other", name) for name in parse.PICTURE_FIELDS}
    if kind == "network":
        found |= {("config", field.name) for field in fields(ViTConfig)}
    if kind == "teach":
        found |= {
            ("preset",),
            ("patch_size",),
            ("fit",),
            ("classes",),
            ("classes", 0, "name"),
            ("classes", 0, "examples"),
        }
        found |= {("classes", 0, "examples", 0, name) for name in parse.PICTURE_FIELDS}
    if kind == "train":
        found |= {("begin",), ("source",), ("run",), ("cancel",), ("download",), ("begin", "config"), ("begin", "from")}
        found |= {("begin", field.name) for field in fields(Choices)} | {("source", "drawing"), ("source", "digit")}
        found |= {("begin", "config", field.name) for field in fields(ViTConfig)} | {("source", "example")}
    return found


PLACES = [(kind, path) for kind in KINDS for path in sorted(fields_of(kind), key=str)]


def test_every_field_and_every_parameter_has_its_sort():
    named = {path[-1] for _, path in PLACES}
    named |= {name for endpoint in ENDPOINTS for name in inspect.signature(endpoint).parameters}
    assert named - SORTS.keys() == set(), "new ones need a row"
    read = {name for kind in ("train", "teach") for name in keys_read(kind)}
    assert read <= {part for kind, path in PLACES for part in path}, "what a function checks itself is in `fields_of`"


def keys_read(kind: str) -> Iterator[str]:
    """The fields that the functions of a kind without a dataclass get from a request."""
    from vit_demo.web.requests import kinds, teaching, training

    sources = {"train": (training, kinds.train), "teach": (teaching,)}[kind]
    for source in sources:
        text = inspect.getsource(source)
        for start in ('request.get("', 'fields.get("', 'one.get("', 'fields["'):
            yield from (part.partition('"')[0] for part in text.split(start)[1:])


def test_the_requests_from_which_these_are_made_are_lawful():
    from ...replies import handle

    for kind in KINDS:
        while "done" in (reply := handle(light(kind))):
            pass
        assert "result" in reply, (kind, reply)


def with_value(kind: str, path: Path, value: Any) -> dict[str, Any]:
    """The light request of a kind with another value in one place."""
    sent = light(kind)
    inner: Any = sent
    for part in path[:-1]:
        inner = inner[part]
    if path[-1] in {*parse.PICTURE_FIELDS, "frame"}:
        for name in parse.PICTURE_FIELDS:
            inner.pop(name, None)
    if path[-1] == "frame":
        sent["live"] = "page"
    inner[path[-1]] = value
    return sent


@pytest.mark.parametrize(
    ("kind", "path"), PLACES, ids=lambda part: part if isinstance(part, str) else ".".join(map(str, part))
)
def test_a_hostile_value_gets_a_sentence_or_a_result(page, kind, path, caplog, capfd):
    lines: list[str] = []
    logger, handler = logging.getLogger("vit_demo"), logging.Handler()
    handler.setFormatter(log.JsonLines())
    handler.emit = lambda record: lines.append(handler.format(record))  # type: ignore[method-assign]
    logger.addHandler(handler)
    requests = logging.getLogger("vit_demo.web.guard.metrics")
    requests.setLevel(logging.INFO)
    count = 0
    try:
        for value in HOSTILE[SORTS[path[-1]]]:
            for _ in range(1000):
                count += 1
                status, text = ask(page, with_value(kind, path, value))
                reply = json.loads(text)
                if "done" not in reply:
                    break
            assert (status == 200 and "error" in reply) or "result" in reply or 400 <= status < 500, (value, text)
            if message := reply.get("error"):
                message = message.replace("\u2068", "").replace("\u2069", "")
                assert message != INTERNAL_ERROR, (value, caplog.text[-3000:])
                assert is_a_sentence(message), (value, message)
        wait_until(lambda: len(lines) >= count)
    finally:
        requests.setLevel(logging.NOTSET)
        logger.removeHandler(handler)
    for line in map(json.loads, lines):
        assert all(len(text) <= log.MAX_LINE_LENGTH for text in line.values() if isinstance(text, str)), line
    assert "Traceback" not in capfd.readouterr().err


def test_no_long_text_is_cut_to_pieces_in_the_event_loop():
    text, steps = "x," * 400_000, 0

    def note(*_: Any) -> None:
        nonlocal steps
        steps += 1

    async def ask_with(kind: str, path: Path) -> None:
        sent = with_value(kind, path, text)
        sys.setprofile(note)
        try:
            with suppress(InputError):
                await poll._reply_or_job(sent)
        finally:
            sys.setprofile(None)

    for kind, path in PLACES:
        if SORTS[path[-1]] in ("text", "number", "file"):
            steps = 0
            run(ask_with(kind, path))
            assert steps < 20_000, (kind, path)


PARAMETERS = [(endpoint, name) for endpoint in ENDPOINTS for name in inspect.signature(endpoint).parameters]


@pytest.mark.parametrize(("endpoint", "name"), PARAMETERS, ids=lambda part: getattr(part, "__name__", part))
def test_a_hostile_argument_gets_a_sentence_or_a_result(endpoint, name):
    lawful = {"image": data_url(example_picture(3)), "preset": "digits-tiny", "patch_size": 14, "patches": [[0, 0]],
              "method": "rollout", "k": 2}  # fmt: skip
    known = inspect.signature(endpoint).parameters
    for value in HOSTILE[SORTS[name]]:
        arguments = {key: given for key, given in lawful.items() if key in known} | {name: value}
        try:
            assert run(endpoint(**arguments)) is not None
        except gr.Error as error:
            assert str(error.message) != INTERNAL_ERROR and is_a_sentence(str(error.message)), (value, error.message)
