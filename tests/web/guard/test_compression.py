"""The page's HTML is compressed for browsers that accept it, and nothing else is touched."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable

import brotli
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from vit_demo.web.guard.compression import Compression

TEXT = "<p>A page</p>" * 500


async def page(request: Request) -> Response:
    if "stream" in request.query_params:

        async def parts() -> AsyncIterator[str]:
            for start in range(0, len(TEXT), 1000):
                yield TEXT[start : start + 1000]

        return StreamingResponse(parts(), media_type="text/html")
    return JSONResponse([TEXT]) if "json" in request.query_params else HTMLResponse(TEXT)


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/", page), Route("/other", page)])
    return TestClient(Compression(app), headers={"accept-encoding": "identity"})


@pytest.mark.parametrize("path", ["/", "/?stream", "/?__theme=dark"])
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
    assert decompress(raw).decode() == TEXT


@pytest.mark.parametrize("accepted", ["identity", "deflate", "gzip;q=0", "br;q=much", "", ";", "*"])
def test_it_is_sent_as_it_is_where_neither_is_accepted(client: TestClient, accepted: str) -> None:
    response = client.get("/", headers={"accept-encoding": accepted})
    assert "content-encoding" not in response.headers and response.text == TEXT


@pytest.mark.parametrize("path", ["/other", "/?json"])
def test_nothing_else_is_touched(client: TestClient, path: str) -> None:
    response = client.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in response.headers and TEXT in response.text
