"""The page is rendered and compressed once for each address of the server, and nothing else is touched."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from typing import Any

import brotli
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from vit_demo.web.guard import compression
from vit_demo.web.guard.bodies import RequestRefused
from vit_demo.web.guard.compression import Compression
from vit_demo.web.guard.quota import Pace

from ...asynchronous import run, until

TEXT = "<p>A page</p>" * 500
PREVIEW = "/gradio_api/vit_demo/see/strokes-IAEAAAAA.jpg"


rendered: list[str] = []
begun: list[int] = []
"""Responses of which the rest comes a moment later."""


async def a_few_turns() -> None:
    for _ in range(9):
        await asyncio.sleep(0)


async def page(request: Request) -> Response:
    """What names the server's address, in several parts."""
    rendered.append(f"{request.url.path}?{request.url.query}")

    async def parts() -> AsyncIterator[str]:
        yield TEXT
        begun.append(1)
        await a_few_turns()
        yield request.headers["host"]

    return StreamingResponse(parts(), media_type="text/html")


async def data(_: Request) -> Response:
    return JSONResponse([TEXT])


SCRIPT = "\n".join(f"export const v{n} = {n * n % 9973} + {n % 17};" for n in range(3000))


async def script(_: Request) -> Response:
    async def parts() -> AsyncIterator[str]:
        begun.append(1)
        await a_few_turns()
        yield SCRIPT

    return StreamingResponse(parts(), media_type="text/javascript")


@pytest.fixture
def client() -> TestClient:
    rendered.clear()
    begun.clear()
    app = Starlette(routes=[Route(path, page) for path in ("/", "/other", "/config", "/gradio_api/info", PREVIEW)])
    app.router.routes += [Route("/data", data), Route("/assets/index-12345678.js", script)]
    return TestClient(Compression(app), headers={"accept-encoding": "identity"})


@pytest.mark.parametrize("path", ["/", "/?__theme=dark", "/config"])
@pytest.mark.parametrize(
    ("accepted", "encoding", "decompress"),
    [
        ("gzip, deflate, br, zstd", "br", brotli.decompress),
        ("gzip, deflate", "gzip", gzip.decompress),
        ("br;q=0, GZIP;q=0.8", "gzip", gzip.decompress),
    ],
)
def test_the_page_is_compressed(
    client: TestClient, path: str, accepted: str, encoding: str, decompress: Callable[[bytes], bytes]
) -> None:
    with client.stream("GET", path, headers={"accept-encoding": accepted}) as response:
        raw = b"".join(response.iter_raw())
    assert response.headers["content-encoding"] == encoding and response.headers["vary"] == "accept-encoding"
    assert int(response.headers["content-length"]) == len(raw) < len(TEXT) / 10
    assert decompress(raw).decode() == f"{TEXT}testserver"


@pytest.mark.parametrize("path", ["/", "/config", "/assets/index-12345678.js"])
def test_who_leaves_before_it_is_sent_leaves_the_next_visitor_the_whole(client: TestClient, path: str) -> None:
    async def left() -> dict[str, Any]:
        while not begun:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def unread(_: object) -> None:
        await asyncio.sleep(0)

    headers = [(b"host", b"testserver"), (b"accept-encoding", b"identity")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    run(client.app(scope, left, unread))
    assert client.get(path).text == (SCRIPT if path.endswith(".js") else f"{TEXT}testserver")


@pytest.mark.parametrize("accepted", ["identity", "deflate", "gzip;q=0", "br;q=much", "", ";", "*"])
def test_it_is_sent_as_it_is_where_neither_is_accepted(client: TestClient, accepted: str) -> None:
    response = client.get("/", headers={"accept-encoding": accepted})
    assert "content-encoding" not in response.headers and response.text == f"{TEXT}testserver"


@pytest.mark.parametrize("path", ["/other", "/data"])
def test_nothing_else_is_touched(client: TestClient, path: str) -> None:
    response = client.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in response.headers and TEXT in response.text


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/info", PREVIEW])
def test_it_is_rendered_once_for_each_address_of_the_server(client: TestClient, path: str) -> None:
    for host in ("one", "other", "one"):
        for query in ("", "?view=grid", "?deep_link=x"):
            headers = {"host": host, "if-none-match": "x"}
            assert client.get(path + query, headers=headers).text == TEXT + host
            assert client.head(path + query, headers=headers).text == ""
    assert rendered == [f"{path}?"] * 2
    for name, value in {"x-forwarded-proto": "https", "origin": "https://example.com"}.items():
        client.get(path, headers={"host": "one", name: value})
    assert len(rendered) == 4


@pytest.mark.parametrize("path", ["/", PREVIEW])
def test_what_is_not_in_the_cache_has_a_pace_of_its_own(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(compression.Pace, "wait", Pace(per_second=0.1, burst=2, clock=lambda: 0.0).wait)
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")

    def visit(host: str, address: str) -> None:
        client.get(path, headers={"host": host, "x-forwarded-for": address})

    for host in ("a", "b", "a", "a"):
        visit(host, "203.0.113.1")
    with pytest.raises(RequestRefused, match="too many requests"):
        visit("c", "203.0.113.1")
    visit("a", "203.0.113.1")
    visit("c", "203.0.113.2")


def test_scripts_are_smaller_for_the_next_visitors(client: TestClient, monkeypatch, compress_again) -> None:
    monkeypatch.setattr(compression, "_smallest", compress_again)

    def transferred() -> int:
        response = client.get("/assets/index-12345678.js", headers={"accept-encoding": "br"})
        assert response.text == SCRIPT
        return int(response.headers["content-length"])

    with client:  # one event loop for all requests
        first = transferred()
        assert first == len(brotli.compress(SCRIPT.encode(), quality=compression.LEVELS["br"]))
        until(lambda: transferred() != first)
        found = transferred()
    assert found == len(brotli.compress(SCRIPT.encode(), quality=11)) < first
