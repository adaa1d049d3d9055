"""The page below a path, however that is arranged: everything that a browser and a client ask for is found."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard.headers import set_root
from vit_demo.web.requests.payload import data_url

from ..asynchronous import PATIENCE
from ..below_a_path import WAYS, Way, served
from .http_requests import png


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS)
def way(request) -> Way:
    return request.param


@pytest.fixture(scope="module")
def client(way) -> Iterator[httpx.Client]:
    with served(way) as address, httpx.Client(base_url=address, timeout=PATIENCE) as client:
        yield client


def test_the_page_and_all_that_it_loads(client, way):
    text = client.get("/").raise_for_status().text
    assert set(re.findall(r'"root":"(.*?)"', text)) == {str(client.base_url).rstrip("/")}
    relative = set(re.findall(r'(?:src|href)="\./(.+?)"', text))
    assert any("vit_demo" in path for path in relative) and any("assets" in path for path in relative)
    for path in (*relative, "config", "healthz", "theme.css", "api", "gradio_api/info"):
        assert client.get(f"/{path}").status_code == 200, path
    assert client.get("/nothing").json() == {"detail": "Not found.", "error": "Not found."}


def test_without_the_last_slash(client, way):
    reply = httpx.get(f"{str(client.base_url).rstrip('/')}?language=de", timeout=PATIENCE)
    if not way.is_taken_off:
        assert reply.status_code == 307 and reply.headers["location"].endswith("/demo/?language=de")
    else:  # the server cannot see it, so the page itself does it: test_browser_below_a_path
        assert re.search(r'data-root="(.*?)"', reply.text)[1] == f"{str(client.base_url).rstrip('/')}/"


def test_requests_of_the_page_uploads_and_files(client):
    source = {"drawing": data_url(example_picture(3)), "preset": "digits-tiny", "patch_size": 14, "fit": "crop"}
    while "done" in (
        reply := client.post("/gradio_api/vit_demo/request", json={"kind": "result", "source": source}).json()
    ):
        pass
    assert reply["result"]["predictions"]
    path = client.post("/gradio_api/vit_demo/photo", content=png()).raise_for_status().json()["path"]
    assert client.get(f"/gradio_api/file={path}").content == png()
    policy = client.get(f"/gradio_api/file={path}").headers["content-security-policy"]
    assert "sandbox" in policy, "the guard knows what is asked for"


def test_an_endpoint_whose_result_is_a_file(client):
    sent = {"data": [data_url(example_picture(3)), "digits-tiny", 14]}
    event = client.post("/gradio_api/call/overlay", json=sent).raise_for_status().json()["event_id"]
    text = client.get(f"/gradio_api/call/overlay/{event}").text
    url = json.loads(re.search(r"event: complete\ndata: (.*)", text)[1])[0]["url"]
    assert url.startswith(f"{client.base_url}gradio_api/file=") and httpx.get(url, timeout=PATIENCE).status_code == 200


def test_tools(client):
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "presets", "arguments": {}}}
    reply = client.post("/gradio_api/mcp/", json=sent, headers={"accept": "application/json, text/event-stream"})
    assert "digits-tiny" in reply.text


def test_behind_a_proxy_that_says_its_name(client, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    headers = {"x-forwarded-host": "example.org", "x-forwarded-proto": "https"}
    text = client.get("/", headers=headers).text
    assert set(re.findall(r'"root":"(.*?)"', text)) == {"https://example.org/demo"}
    sent = {"data": [data_url(example_picture(3)), "digits-tiny", 14]}
    event = client.post("/gradio_api/call/overlay", json=sent, headers=headers).json()["event_id"]
    text = client.get(f"/gradio_api/call/overlay/{event}", headers=headers).text
    assert '"https://example.org/demo/gradio_api/file=' in text


@pytest.mark.parametrize(
    ("variable", "root", "path", "expected"),
    [
        ("", "", "/x", ("", "/x")),
        ("", "", "/", ("", "/")),
        ("", "/demo", "/demo/x", ("/demo", "/demo/x")),
        ("", "/demo", "/x", ("/demo", "/demo/x")),  # of a server that leaves it out
        ("demo", "", "/demonstration", ("/demo", "/demo/demonstration")),
        ("demo", "", "/demo", ("/demo", "/demo")),
        ("a/b/", "", "/a/b/x", ("/a/b", "/a/b/x")),
        ("https://example.org/demo/", "", "/x", ("/demo", "/demo/x")),
        ("https://example.org/", "", "/x", ("", "/x")),
        ("demo/vit", "/vit", "/vit/x", ("/demo/vit", "/demo/vit/x")),  # mounted, behind a proxy
    ],
)
def test_where_the_page_is(variable, root, path, expected, monkeypatch):
    monkeypatch.setenv("GRADIO_ROOT_PATH", variable)
    scope: dict[str, Any] = {"root_path": root, "path": path}
    set_root(scope)
    assert (scope["root_path"], scope["path"]) == expected
    set_root(again := dict(scope))
    assert again == scope
