"""The endpoints as MCP tools, used by the protocol's official client."""

import base64
import http.client
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio
import numpy as np
import pytest
import uvicorn
from PIL import Image
from starlette.datastructures import Headers

import vit_demo
from vit_demo.defaults import DEFAULT_METHOD
from vit_demo.version import __version__
from vit_demo.web.api import mcp
from vit_demo.web.guard import security
from vit_demo.web.guard.bodies import MAX_EVENT_BYTES
from vit_demo.web.server import asgi_app

pytest.importorskip("mcp", reason="needs the extra `mcp`")
import jsonschema
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from ...asynchronous import PATIENCE, a_moment, until
from ...asynchronous import run as run_coroutine
from ..http_requests import request

TOOL_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "presets", "arguments": {}}}
JSON = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
LION = Path(gradio.__file__).parent / "media_assets" / "images" / "lion.jpg"


def data_url(path: Path, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


@pytest.fixture(scope="module")
def session(page) -> Callable[..., Any]:
    """Runs a coroutine function with a connected client."""

    def run(use: Callable[[ClientSession], Any]) -> Any:
        async def connected() -> Any:
            async with (
                streamable_http_client(f"{page.local_url}gradio_api/mcp/") as (reader, writer, *_),
                ClientSession(reader, writer) as client,
            ):
                await client.initialize()
                return await use(client)

        return run_coroutine(connected())

    return run


@pytest.fixture(scope="module")
def call(session) -> Callable[..., Any]:
    return lambda tool, **arguments: session(lambda client: client.call_tool(tool, arguments))


def test_every_endpoint_is_a_tool_with_a_description_of_each_parameter(session):
    tools = {tool.name: tool for tool in session(lambda client: client.list_tools()).tools}
    names = {"presets", "labels", "methods", "predict", "explain", "overlay", "explain_image"}
    names |= {"logit_lens", "drop_patches", "head_effects", "faithfulness", "similarity", "pca", "kmeans", "norms"}
    assert set(tools) == names
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.inputSchema)
        assert len(tool.description) > 60 and "upload_file_to_gradio" not in tool.description
        described = tool.inputSchema["properties"]
        assert all(len(parameter["description"]) > 10 for parameter in described.values()), tool.name
        assert "image" not in described or "data:image" in described["image"]["description"]
    explain = tools["explain_image"]
    assert explain.inputSchema["required"] == ["image"]
    assert explain.description.endswith("sometimes with high confidence.")
    method, preset = explain.inputSchema["properties"]["method"], explain.inputSchema["properties"]["preset"]
    assert method["enum"] == list(vit_demo.methods())
    without_class = method["description"].partition("but for ")[2].rstrip(".").split(", ")
    assert without_class == ["attention", "rollout", "norm_attention"]
    jsonschema.validate("photos-tiny", preset)
    jsonschema.validate("org/name", preset)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate("photos", preset)


def test_the_presets_are_few_words_and_their_labels_apart(call):
    text = call("presets").content[0].text
    presets = {preset["name"]: preset for preset in json.loads(text)}
    assert len(text) < 6_600 and presets["vit-b16"]["num_labels"] == 1000 and not presets["vit-b16"]["labels"]
    assert presets["photos-tiny"]["labels"] == list(vit_demo.presets()["photos-tiny"].labels)
    assert json.loads(call("labels", preset="vit-b16").content[0].text) == list(vit_demo.presets()["vit-b16"].labels)
    assert "There is no preset" in call("labels", preset="../x").content[0].text


def test_the_server_names_its_version(session):
    async def initialized(client: ClientSession) -> Any:
        return await client.initialize()

    assert session(initialized).serverInfo.version == __version__


def test_a_photo_is_explained_in_one_call(call):
    answer = call("explain_image", image=data_url(LION, "jpeg"))
    assert not answer.isError
    numbers, picture = answer.content[:2]
    found = json.loads(numbers.text)
    expected = vit_demo.explore(LION, "photos-tiny")
    assert found["label"] == found["explained"] == expected.top(1)[0][0] == "lion"
    assert found["is_confident"] is True and found["class_specific"] is True and found["method"] == DEFAULT_METHOD
    np.testing.assert_allclose(found["map"], expected.heatmap(DEFAULT_METHOD), atol=1e-5)
    shown = Image.open(io.BytesIO(base64.b64decode(picture.data)))
    assert picture.mimeType == "image/png"
    assert np.array_equal(
        np.asarray(shown), np.asarray(expected.overlay(expected.heatmap(DEFAULT_METHOD), method=DEFAULT_METHOD))
    )


def test_the_other_tools_answer_with_numbers(call, three):
    drawn = {"image": data_url(three, "png"), "preset": "digits-tiny", "patch_size": 7}
    expected = vit_demo.explore(three, "digits-tiny", patch_size=7)

    def numbers(tool: str, **more: Any) -> Any:
        answer = call(tool, **drawn, **more)
        assert not answer.isError, answer
        return json.loads(answer.content[0].text)

    assert numbers("predict")["label"] == "3"
    np.testing.assert_allclose(numbers("explain", method="rollout")["map"], expected.rollout(), atol=1e-6)
    lens = [[(one["label"], one["confidence"]) for one in depth] for depth in numbers("logit_lens")]
    for depth, wanted in zip(lens, expected.logit_lens(), strict=True):
        assert [label for label, _ in depth] == [label for label, _ in wanted[:5]]
    dropped = numbers("drop_patches", patches=[[0, 0], [1, 2]])
    wanted = expected.drop_patches([(0, 0), (1, 2)]).top(1)[0]
    assert dropped["before"]["label"] == "3"
    assert dropped["after"]["confidences"][0]["confidence"] == pytest.approx(wanted[1], abs=1e-4)
    lens = numbers("logit_lens", patches=True)
    assert [one["label"] for one in lens[-1][2]] == [pairs[0][0] for pairs in expected.logit_lens(patches=True)[-1][2]]
    alike = numbers("similarity", row=1, col=2, block=3, other=drawn["image"])
    np.testing.assert_allclose(alike["map"], expected.similarity((1, 2), 3), atol=1e-5)
    components = [[patch or [np.nan] * 3 for patch in row] for row in numbers("pca", remove_background=True)["map"]]
    np.testing.assert_allclose(components, expected.pca(remove_background=True), atol=1e-3)
    assert numbers("kmeans", k=4)["map"] == expected.kmeans(4).tolist()
    assert numbers("norms")["outliers"] == []
    heads = numbers("head_effects", label="3", against="8", silent="1.0,0.2")
    silent = expected.without(heads=[(0, 2), (1, 0)])
    np.testing.assert_allclose(heads["effects"], silent.head_effects("3", "8"), atol=1e-4)
    assert heads["prediction"]["label"] == silent.top(1)[0][0] and (heads["label"], heads["against"]) == ("3", "8")
    for bad in ("1.0,1.0", "9.0", "1,0", "01.0", "0.-1", ",".join(["1.0"] * 10_000)):
        answer = call("head_effects", **drawn, silent=bad)
        assert answer.isError and len(answer.content[0].text) < 300, bad
    areas = numbers("faithfulness", method="relevance")
    assert areas["deletion"] == pytest.approx(expected.faithfulness("relevance").deletion_area, abs=1e-4)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("http://127.0.0.1:1/lion.jpg", "URLs are not fetched"),
        ("/etc/passwd", "not on the server"),
        ("data:image/png;base64,!!!", "not valid Base64"),
        ("data:image/png,plain", "cannot be read"),
        ("data:text/plain;base64,aGVsbG8=", "picture"),
    ],
)
def test_what_is_no_picture_is_refused_in_words(call, image, words):
    answer = call("predict", image=image)
    assert answer.isError and words in answer.content[0].text


def test_a_picture_that_is_too_large_is_refused_before_it_is_read(call):
    with pytest.raises(BaseExceptionGroup) as refused:
        call("predict", image="data:image/png;base64," + "A" * MAX_EVENT_BYTES)
    assert refused.group_contains(Exception, match="413")


def test_a_call_forwards_none_of_its_headers(page, monkeypatch):
    seen = []
    clean = security.clean_headers

    def record(scope: Any, path: str) -> None:
        clean(scope, path)
        if path.startswith("/queue/"):
            seen.append(Headers(scope=scope))

    monkeypatch.setattr(security, "clean_headers", record)
    status, _, reply = request(
        page, "POST", "/gradio_api/mcp/", TOOL_CALL, **JSON, X_Forwarded_Host="evil.example", X_Other="forged"
    )
    assert status == 200 and b"tabby cat" in reply and seen
    assert not any("evil" in headers.get("x-forwarded-host", "") or "x-other" in headers for headers in seen)


def test_too_many_calls_at_once_are_refused(page, call, monkeypatch):
    assert mcp.MAX_TOOL_CALLS < mcp.MAX_FIRST_CALLS <= 40, "Gradio's client has 40 threads"
    monkeypatch.setattr(mcp, "MAX_FIRST_CALLS", 0)
    assert "Too many tools" in call("presets").content[0].text
    monkeypatch.undo()
    assert not call("presets").isError


def test_a_newcomers_first_call_has_a_place(page, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    calls = {f"call {n}": f"203.0.113.{n % 3}" for n in range(mcp.MAX_TOOL_CALLS)}
    monkeypatch.setattr(page.mcp_server_obj, "_calls", calls, raising=False)

    def refused(address: str) -> bool:
        headers = {**JSON, "X_Forwarded_For": address}
        reply = request(page, "POST", "/gradio_api/mcp/", json.dumps(TOOL_CALL).encode(), **headers)[2]
        assert (b"tabby cat" in reply) != (b"Too many tools" in reply), reply
        return b"Too many tools" in reply

    assert refused("203.0.113.1") and not refused("203.0.113.9") and not refused("203.0.113.9"), "one after the other"
    calls["of the newcomer"] = "203.0.113.9"
    assert refused("203.0.113.9") and not refused("203.0.113.8")
    calls |= {f"first call {n}": f"198.51.100.{n}" for n in range(mcp.MAX_FIRST_CALLS - len(calls))}
    assert refused("203.0.113.8"), "what Gradio's client can do at once"


@pytest.fixture
def other_program() -> Iterator[uvicorn.Server]:
    """The page as an application of another program, which has no address from ``launch``."""
    server = uvicorn.Server(uvicorn.Config(asgi_app(), "127.0.0.1", 0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield server
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("header", ["Host", "X-Forwarded-Host"])
def test_no_header_decides_which_server_answers_a_call(header, other_program):
    port = other_program.servers[0].sockets[0].getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as attacker:
        attacker.setblocking(False)
        address = f"127.0.0.1:{attacker.getsockname()[1]}"
        headers = {name.replace("_", "-"): value for name, value in JSON.items()} | {header: address}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("POST", "/gradio_api/mcp/", json.dumps(TOOL_CALL), headers)
        assert b"tabby cat" in connection.getresponse().read()
        a_moment()
        with pytest.raises(BlockingIOError):
            attacker.accept()
        connection.close()


def test_only_tools_are_served(page):
    """Gradio's ``prompts/get`` would run any tool past the limits of calls."""
    for method in ("prompts/list", "prompts/get", "resources/list", "resources/read", "resources/templates/list"):
        body = TOOL_CALL | {"method": method, "params": {"name": "presets", "arguments": {}, "uri": "x:y"}}
        reply = request(page, "POST", "/gradio_api/mcp/", json.dumps(body).encode(), **JSON)[2]
        assert b"Method not found" in reply, method
