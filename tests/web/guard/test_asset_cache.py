"""Scripts and styles are compressed once, kept by browsers, and equal to those that are not cached."""

import re

import brotli
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from vit_demo.web.guard import compression
from vit_demo.web.guard.compression import Compression

from ...asynchronous import PATIENCE, until
from ..http_requests import request

NAME = "index-DphvyggB.js"
requests: list[str] = []


async def asset(request: Request) -> Response:
    """A file; some set a cookie or are not found."""
    requests.append(request.url.path)
    if "missing" in request.url.path:
        return PlainTextResponse("none", 404)
    media_type = request.query_params.get("type", "text/javascript")
    response = Response(request.url.path.encode() * 100, media_type=media_type)
    if "private" in request.url.path:
        response.set_cookie("name", "value")
    return response


@pytest.fixture
def client() -> TestClient:
    requests.clear()
    app = Starlette(routes=[Route("/{path:path}", asset, methods=["GET", "POST"])])
    return TestClient(Compression(app))


def raw(client: TestClient, path: str, **headers: str) -> tuple[bytes, httpx.Headers]:
    with client.stream("GET", path, headers=headers) as response:
        return b"".join(response.iter_raw()), response.headers


@pytest.mark.parametrize("accepted", ["gzip, deflate, br", "gzip", "identity"])
def test_the_second_response_is_the_first(client: TestClient, accepted: str) -> None:
    first, second = (client.get(f"/assets/{NAME}", headers={"accept-encoding": accepted}) for _ in range(2))
    assert first.text == second.text and len(requests) == 1
    for response in (first, second):  # that of br may be compressed again meanwhile
        response.headers.pop("content-length")
    assert first.headers == second.headers


def test_each_encoding_has_its_own_response(client: TestClient) -> None:
    for accepted in ("br", "gzip", "identity", "br", "gzip", "identity"):
        response = client.get(f"/assets/{NAME}", headers={"accept-encoding": accepted})
        assert response.text == f"/assets/{NAME}" * 100
        assert response.headers.get("content-encoding", "identity") == accepted
    assert len(requests) == 3


@pytest.mark.parametrize("media_type", ["text/javascript", "application/javascript", "text/css"])
def test_scripts_and_styles_are_compressed_whatever_python_calls_them(client: TestClient, media_type: str) -> None:
    body, headers = raw(client, f"/assets/{NAME}?type={media_type}", **{"accept-encoding": "br"})
    assert headers["content-encoding"] == "br" and len(body) < 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets",
        "/other/assets/index-12345678.js",
        "/assets/a/index-12345678.js",
        "/assets//index-12345678.js",
        "/gradio_api/vit_demo/0/page.js",
        "/assets/missing-12345678.js",
        "/assets/private-12345678.js",
    ],
)
def test_nothing_else_is_kept(client: TestClient, path: str) -> None:
    first, second = client.get(path), client.get(path)
    assert first.content == second.content and len(requests) == 2
    assert "cache-control" not in second.headers


@pytest.mark.parametrize("header", compression.CONDITIONS)
def test_a_part_or_a_condition_is_left_to_the_application(client: TestClient, header: str) -> None:
    for _ in range(2):
        client.get(f"/assets/{NAME}", headers={header: "bytes=0-3"})
    client.post(f"/assets/{NAME}")
    assert len(requests) == 3


def test_what_is_kept_is_bounded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Starlette(routes=[Route("/{path:path}", asset)])
    monkeypatch.setattr(compression, "ASSET_CACHE_BYTES", 20_000)
    cache = Compression(app)
    bounded = TestClient(cache, headers={"accept-encoding": "identity"})
    for number in range(50):
        bounded.get(f"/assets/a-{number:08}.js")
    assert 0 < cache._assets.num_bytes <= 20_000


def test_the_page_loads_no_file_that_browsers_must_ask_for_again(page) -> None:
    client = httpx.Client(base_url=page.local_url, headers={"accept-encoding": "br"}, timeout=PATIENCE)
    names = set(re.findall(r"(?:assets|gradio_api/vit_demo)/[^\"' ]+\.(?:js|css)", client.get("/").text))
    assert len(names) == 3, "Gradio's script and style, and ours"
    for name in names:
        first, second = client.get(name), client.get(name)
        assert first.headers["cache-control"] == second.headers["cache-control"] == compression.FOREVER
        assert first.content == second.content and "x-content-type-options" in second.headers


def test_the_page_is_compressed_again_for_the_next_visitors(page, monkeypatch, compress_again) -> None:
    monkeypatch.setattr(compression, "_smallest", compress_again)

    def fetch() -> bytes:
        return request(page, "GET", "/", Accept_Encoding="br", Host="localhost:7")[2]

    first = fetch()
    until(lambda: len(fetch()) < len(first))
    assert brotli.decompress(fetch()) == brotli.decompress(first)
