"""The table of the heaviest requests has a row for everything that may be sent, and every row is lawful."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.routing import Mount

from benchmarks import flood, heaviest
from vit_demo.methods import METHODS
from vit_demo.service.job_limits import POOLS
from vit_demo.web.api import ENDPOINTS
from vit_demo.web.guard.headers import OPEN_ROUTES
from vit_demo.web.requests import parse
from vit_demo.web.requests.kinds import KINDS, RequestKind
from vit_demo.web.server import asgi_app
from vit_demo.weights import PRESETS

from ..asynchronous import PATIENCE, run


def test_every_kind_and_every_endpoint_has_its_row():
    assert heaviest.KINDS.keys() == KINDS.keys()
    assert list(heaviest.ENDPOINTS) == [endpoint.__name__ for endpoint in ENDPOINTS]
    assert heaviest.LIVE.keys() == {pool for pool in POOLS if pool.startswith("live ")}
    assert set(heaviest.rows()) <= set(flood.ways([])), "each is a way to flood"


def routes_of(routes: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Methods and paths of an application, with those of what it mounts and includes."""
    for route in routes:
        inner = getattr(route, "original_router", route if isinstance(route, Mount) and route.routes else None)
        if inner is not None:
            yield from routes_of(inner.routes, prefix + getattr(route, "path", ""))
        elif isinstance(route, Mount):
            yield from ((method, prefix + route.path) for method in OPEN_ROUTES)
        else:
            yield from ((method, prefix + route.path) for method in getattr(route, "methods", None) or ())


def is_open(method: str, path: str) -> bool:
    sample = re.sub(r"\{\w+:int\}", "7", path)
    sample = re.sub(r"\{[^}]*\}", "x", sample).removeprefix("/gradio_api")
    return method in OPEN_ROUTES and OPEN_ROUTES[method].fullmatch(sample or "/") is not None


def test_every_open_route_has_its_row():
    pattern = r"\{\w+(:\w+)?\}"
    found = {(method, path) for method, path in routes_of(asgi_app().routes) if is_open(method, path)}
    assert len(found) > 40
    sent = [name.partition(" live ")[0].partition(" ") for name in heaviest.ROUTES]
    for method, path in sorted(found):
        parts = re.split(pattern, path.rstrip("/") or "/")[::2]
        matching = re.compile(".+".join(map(re.escape, parts)) + "/?")
        assert any(method == verb and matching.fullmatch(given) for verb, _, given in sent), f"{method} {path}"


def test_the_rows_are_heavy():
    assert heaviest.SLOW in METHODS and METHODS[heaviest.SLOW].is_slow
    tokens = {name: (preset.config.image_size // min(preset.patch_sizes)) ** 2 * preset.config.embed_dim
              for name, preset in PRESETS.items() if preset.task == "digits"}  # fmt: skip
    heavy = heaviest.source(0)
    assert heavy["preset"] == max(tokens, key=tokens.__getitem__)
    assert heavy["patch_size"] == min(PRESETS[heavy["preset"]].patch_sizes)
    [drawing] = [path for path in heaviest.READ if "strokes-" in path]
    assert drawing.format(n=1) != drawing.format(n=2), "a preview that is not in the cache"
    assert len(json.dumps(heaviest.KINDS["teach"](0))) < 1_000_000 > len(json.dumps(heaviest.KINDS["result"](0)))


@pytest.mark.parametrize("pool", heaviest.LIVE)
def test_no_two_live_requests_are_equal_and_each_is_computed_where_it_is_said(pool):
    first, second = (parse.ResultRequest.parse(heaviest.LIVE[pool](n), live=True) for n in (1, 2))
    assert first.key != second.key
    assert first.source.turn(PRESETS[first.preset], first.patch_size, live=True).pool == pool


@pytest.mark.parametrize("name", KINDS)
def test_no_two_requests_of_a_kind_are_equal_and_each_is_lawful(name):
    kind, first, second = KINDS[name], heaviest.KINDS[name](1), heaviest.KINDS[name](2)
    if name not in ("models", "method_docs", "model"):  # which cost next to nothing
        assert first != second
    if isinstance(kind, RequestKind):
        source = parse.ResultRequest.parse(first["source"])
        assert source.key != parse.ResultRequest.parse(second["source"]).key
        parse.checked(kind.fields, first, source)


REFUSED = {
    "GET /metrics": 404,  # without its token
    "DELETE /gradio_api/mcp/": 405,
    "anything that is closed": 404,
}


@pytest.fixture
def few_passes(monkeypatch):
    """The slow method with few of its passes: whether a row is answered does not depend on how many they are."""
    slow = METHODS[heaviest.SLOW]
    monkeypatch.setitem(METHODS, heaviest.SLOW, replace(slow, function=partial(slow.function, budget=6)))


def distinct() -> list[str]:
    """The rows, without those that send what another one sends."""
    names: dict[Any, str] = {}
    for name, send in heaviest.rows().items():
        names.setdefault((send.func, send.args) if isinstance(send, partial) else send, name)
    return list(names.values())


@pytest.mark.parametrize("name", distinct())
def test_every_row_is_answered(page, few_passes, name):
    if "mcp" in name:
        pytest.importorskip("mcp", reason="needs the extra `mcp`")

    async def send() -> httpx.Response:
        headers = {"accept": "application/json, text/event-stream"}
        async with httpx.AsyncClient(base_url=page.local_url, timeout=PATIENCE, headers=headers) as client:
            return await asyncio.wait_for(heaviest.rows()[name](client, 12345), PATIENCE)

    reply = run(send())
    text = reply.text if reply.is_closed and reply.stream else ""
    if name in REFUSED:
        assert reply.status_code == REFUSED[name]
    else:
        assert reply.status_code < 400, reply.text
        assert '"error":' not in text.partition("<script")[0] and "event: error" not in text, text[:500]
