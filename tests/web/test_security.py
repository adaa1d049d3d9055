"""What strangers may do to the server, tried over HTTP as they would."""

from __future__ import annotations

import http.client
import io
import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.web import launch, uploads
from vit_demo.web.components.pad import example_picture, to_data_url
from vit_demo.web.limits import EVENT_BYTES, UPLOAD_BYTES
from vit_demo.web.security import Quota, Refusal, _address

DRAWING = to_data_url(example_picture(3))
NO_SUCH = "/no/such/folder/picture.png"


@pytest.fixture(scope="module")
def page():
    page = launch("127.0.0.1", wait=False)
    yield page
    page.close()


def request(page, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    address = urlsplit(page.local_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    if isinstance(body, dict):
        body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def event(page, number: int, data: list[Any]) -> str:
    """What an event answers, by its number: all that its stream says, or why it was not let in."""
    session = secrets.token_hex(8)
    body = {"data": data, "fn_index": number, "session_hash": session, "trigger_id": None}
    status, _, said = request(page, "POST", "/gradio_api/queue/join", body)
    if status != 200:
        return f"{status} {said.decode()}"
    address = urlsplit(page.local_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("GET", f"/gradio_api/queue/data?session_hash={session}")
    stream, heard = connection.getresponse(), []
    for line in stream:
        if line.startswith(b"data:"):
            message = json.loads(line[5:])
            if message["msg"] in ("process_generating", "process_completed", "unexpected_error"):
                heard.append(message)
            if message["msg"] in ("process_completed", "unexpected_error", "close_stream"):
                break
    connection.close()
    outputs = [one.get("output") or {} for one in heard]
    return json.dumps(
        [[one["msg"], out.get("data"), out.get("error")] for one, out in zip(heard, outputs, strict=True)]
    )


def inputs_of(page) -> Iterator[tuple[int, list[Any]]]:
    """Every event of the page with inputs that it understands."""
    plain = {
        "image": None, "dropdown": "digits-tiny", "radio": "4", "textbox": "", "file": None,
        "number": -1, "html": DRAWING, "dataset": 0,
    }  # fmt: skip
    for number, function in page.fns.items():
        values = [
            plain.get(type(block).__name__.lower(), plain.get(block.get_block_name())) for block in function.inputs
        ]
        yield (
            number,
            ["crop" if block.elem_id == "fit" else v for block, v in zip(function.inputs, values, strict=True)],
        )


def wrapped(path: str) -> list[Any]:
    """A path as a stranger could send it."""
    data = {"path": path}
    return [
        path,
        f"file://{path}",
        data,
        [path],
        {"value": path, "url": path},
        {**data, "meta": {"_type": "gradio.FileData"}},
        {**data, "url": f"/gradio_api/file={path}", "orig_name": "a.png", "meta": {"_type": "gradio.FileData"}},
        [data],
        {"value": data},
        {"background": data, "layers": [data], "composite": data},
        {"image": data, "value": path, "digit": path, "upload": path},
    ]


def without_what_differs(said: str, *paths: str) -> str:
    """An answer without the paths that were sent and the counters that no two answers share."""
    said = said.replace("\\", "")  # what stands before the marks of Markdown
    for path in paths:
        said = said.replace(path, "PATH")
    return said


@pytest.fixture
def hidden(tmp_path):
    """A picture on the server that nobody has uploaded, and the path of none beside it, of the same length."""
    path = tmp_path / "seven.png"
    example_picture(7).save(path)
    return str(path), str(tmp_path / "eight.png")


def test_no_event_by_number_reads_a_file_of_the_server_or_tells_whether_there_is_one(page, hidden):
    there, missing = hidden
    tried = 0
    for number, plain in inputs_of(page):
        for place in range(len(plain)):
            for a, b in zip(wrapped(there), wrapped(missing), strict=True):
                said = [event(page, number, [*plain[:place], value, *plain[place + 1 :]]) for value in (a, b)]
                said = [without_what_differs(text, there, missing) for text in said]
                said = [text if '"run"' not in text else "a result of the other inputs" for text in said]
                assert said[0] == said[1], (number, place, a)
                tried += 1
    assert tried > 300
    assert "data:image" in event(page, *next((n, d) for n, d in inputs_of(page) if DRAWING in d)), "the plain ones work"


@pytest.mark.parametrize("wrap", range(11))
def test_the_stage_reads_no_file_of_the_server(page, hidden, wrap):
    stage = next(block._id for block in page.blocks.values() if type(block).__name__ == "Stage")
    source = {"preset": "digits-tiny", "patch_size": 4, "fit": "crop", "dropped": []}
    said = []
    for path in hidden:
        for field in ("digit", "upload", "preset", "fit"):
            sent = {"about": "logit_lens", "source": {**source, field: wrapped(path)[wrap]}}
            body = {"data": sent, "component_id": stage, "fn_name": "ask", "session_hash": "x"}
            status, _, answer = request(page, "POST", "/gradio_api/component_server", body)
            assert b"depths" not in answer
            said.append(f"{status} {without_what_differs(answer.decode(), *hidden)}")
    assert said[:4] == said[4:]


def test_a_path_in_the_upload_folder_that_nobody_was_given_says_nothing(page):
    folder = uploads.folder() / secrets.token_hex(32)
    folder.mkdir()
    (folder / "link.png").symlink_to("/etc/hostname")
    for path in (
        folder / "link.png",
        folder / "none.png",
        folder,
        folder / ".." / ".." / "x.png",
        folder / "a" / "b.png",
    ):
        body = {"data": [{"path": str(path), "meta": {"_type": "gradio.FileData"}}, "digits-tiny", 4]}
        status, _, said = request(page, "POST", "/gradio_api/call/predict", body)
        if status == 200:
            _, _, said = request(page, "GET", f"/gradio_api/call/predict/{json.loads(said)['event_id']}")
            assert said.startswith(b"event: error")
        assert uploads.GONE.encode() in said or b'"error"' in said
        assert b"hostname" not in said and b"No such file" not in said


def test_the_queue_cannot_be_gone_around(page):
    for path in ("run", "api"):
        status, _, said = request(page, "POST", f"/gradio_api/{path}/predict", {"data": [None, "digits-tiny", 4]})
        assert status == 404 and b"label" not in said


@pytest.mark.parametrize(
    "path",
    ["/monitoring", "/monitoring/summary", "/gradio_api/deep_link?session_hash=x", "/gradio_api/proxy=http://localhost/",
     "/gradio_api/run-history/buckets", "/gradio_api/vibe-code/"],
)  # fmt: skip
def test_what_the_page_does_not_use_is_closed(page, path):
    assert request(page, "GET", path)[0] == 404


def test_bodies_are_bounded(page):
    joined = {"fn_index": 0, "session_hash": "x"}
    for data in (["x" * 20_000_000], [[0] * 200_000], [[[]] * 100_000]):
        status, _, said = request(page, "POST", "/gradio_api/queue/join", {"data": data, **joined})
        assert status == 413 and b"send less" in said
    deep = b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for body in (deep, b"{", b"\xff\xfe", b"not json"):
        status, _, said = request(page, "POST", "/gradio_api/queue/join", body, Content_Type="application/json")
        assert status == 400 and b"JSON" in said
    chunked = request(page, "POST", "/gradio_api/queue/join", (b"x" * EVENT_BYTES for _ in range(3)))  # type: ignore[arg-type]
    assert chunked[0] in (400, 413)


def upload(page, data: bytes, name: str = "a.png") -> tuple[int, bytes]:
    boundary = secrets.token_hex(8)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode()
    body = head + data + f"\r\n--{boundary}--\r\n".encode()
    status, _, said = request(
        page, "POST", "/gradio_api/upload", body, Content_Type=f"multipart/form-data; boundary={boundary}"
    )
    return status, said


def png(side: int = 40) -> bytes:
    buffer = io.BytesIO()
    example_picture(3).resize((side, side)).save(buffer, "PNG")
    return buffer.getvalue()


def test_uploads_are_bounded_by_file_and_by_address(page, monkeypatch):
    status, said = upload(page, b"0" * (UPLOAD_BYTES + 1))
    assert status == 413
    status, said = upload(page, png())
    assert status == 200 and uploads.is_inside(json.loads(said)[0])
    monkeypatch.setattr("vit_demo.web.security.Quota.spend", Quota(1).spend)
    status, said = upload(page, png())
    assert status == 429 and b"try again later" in said


def test_a_quota_counts_each_address_and_forgets_after_an_hour():
    now = [1000.0]
    quota = Quota(100, seconds=3600, addresses=2, clock=lambda: now[0])
    quota.spend("a", 60)
    quota.spend("b", 60)
    with pytest.raises(Refusal, match="try again later"):
        quota.spend("a", 60)
    now[0] += 3700
    quota.spend("a", 60)
    quota.spend("c", 100)
    assert len(quota._used) == 2


def test_behind_a_proxy_each_visitor_has_a_quota_and_cannot_borrow_anothers(monkeypatch):
    def address(*forwarded: bytes) -> str:
        return _address(
            {"type": "http", "client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", f) for f in forwarded]}
        )

    for name in ("VIT_DEMO_PROXY", "SPACE_ID"):
        monkeypatch.delenv(name, raising=False)
    assert address(b"203.0.113.7") == "10.0.0.1", "without a proxy anybody could write the header"
    monkeypatch.setenv("SPACE_ID", "a/b")
    assert address() == "10.0.0.1" and address(b"203.0.113.7") == "203.0.113.7"
    assert address(b"made up, 203.0.113.7") == address(b"made up", b"203.0.113.7") == "203.0.113.7"


def test_old_uploads_go_and_the_oldest_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "_folder", tmp_path)

    def put(age: float) -> Path:
        path = tmp_path / secrets.token_hex(32) / "photo.png"
        path.parent.mkdir()
        path.write_bytes(png())
        os.utime(path, (now - age, now - age))
        return path

    now = time.time()
    example = put(10_000)
    janitor = uploads.Janitor()
    files = [put(age) for age in (300, 200, 100)]
    janitor.clean(now)
    assert all(file.exists() for file in files)
    monkeypatch.setattr(uploads, "UPLOADS_TOTAL", 2 * len(png()))
    janitor.clean(now)
    assert [file.exists() for file in files] == [False, True, True] and not files[0].parent.exists()
    uploads.read(files[1])  # used again, so it counts as new
    janitor.clean(now + 3550)
    assert [file.exists() for file in files] == [False, True, False]
    janitor.clean(now + 2 * 3600)
    assert not files[1].exists() and example.exists(), "what was there at the start stays"


def test_the_key_of_uploads_is_new_in_each_process():
    from gradio import processing_utils
    from gradio.utils import get_hash_seed

    uploads.folder()
    assert processing_utils.hash_seed != get_hash_seed().encode()


def test_every_answer_has_the_headers(page):
    for path in ("/", "/config", "/healthz", "/theme.css", "/nothing"):
        _, headers, _ = request(page, "GET", path)
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'self' https://huggingface.co" in policy and "object-src 'none'" in policy
    _, said = upload(page, b"<script>alert(1)</script>", "a.html")
    _, headers, _ = request(page, "GET", f"/gradio_api/file={json.loads(said)[0]}")
    assert "sandbox" in headers["content-security-policy"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_no_strange_origin_is_let_in_with_credentials(page, origin, monkeypatch):
    host = {"Origin": origin, "Host": "space.example"}
    for method in ("GET", "OPTIONS"):
        extra = {"Access-Control-Request-Method": "POST"} if method == "OPTIONS" else {}
        _, headers, _ = request(page, method, "/config", **host, **extra)
        assert "access-control-allow-origin" not in headers and "access-control-allow-credentials" not in headers
    monkeypatch.setenv("VIT_DEMO_ALLOWED_ORIGINS", "https://evil.example")
    if origin != "null":
        assert request(page, "GET", "/config", **host)[1]["access-control-allow-origin"] == origin


@pytest.mark.parametrize(
    "data",
    [[], [None], [1, 2, 3], [None, "digits-tiny", 4], ["x", "digits-tiny", 4], [{}, {}, {}], [[], "digits-tiny", 4],
     [{"path": None}, "digits-tiny", 4], [{"url": "http://localhost/"}, "digits-tiny", 4]],
)  # fmt: skip
def test_wrong_arguments_get_a_sentence(page, data, capsys):
    number = next(n for n, function in page.fns.items() if function.api_name == "predict")
    said = event(page, number, data)
    assert (said[4:] if said.startswith("4") else json.loads(said)[-1][2]).rstrip('"}').endswith(".")
    assert "Traceback" not in capsys.readouterr().err


def test_sessions_leave_little_behind(page):
    number, data = next((n, d) for n, d in inputs_of(page) if DRAWING in d)
    for _ in range(40):
        event(page, number, data)
    assert len(page.state_holder.session_data) <= 32


def test_nothing_about_visitors_models_is_told(page):
    _, _, said = request(page, "GET", "/healthz")
    assert set(json.loads(said)) == {"status", "device", "presets", "version"}


def test_drawings_are_pngs_in_the_request_and_nothing_else(page):
    number, data = next((n, d) for n, d in inputs_of(page) if DRAWING in d)
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (4000, 40), np.uint8))
    for sent in (to_data_url(noise), DRAWING.replace("png", "gif"), DRAWING[:-40], "data:image/png;base64,"):
        said = event(page, number, [sent if value == DRAWING else value for value in data])
        assert "The drawing" in json.loads(said)[-1][2]


@pytest.mark.parametrize(
    "call",
    [None, 3, [], {}, {"component_id": 10**9, "fn_name": "ask", "session_hash": "x", "data": 1},
     {"component_id": "STAGE", "fn_name": "get_config", "session_hash": "x", "data": 1},
     {"component_id": "STAGE", "fn_name": ["ask"], "session_hash": "x", "data": 1},
     {"component_id": "STAGE", "fn_name": "ask", "data": 1},
     {"component_id": "STAGE", "fn_name": "block_trace", "session_hash": "x", "data": ["k", 1]}],
)  # fmt: skip
def test_a_call_of_no_function_gets_a_sentence(page, call):
    stage = next(block._id for block in page.blocks.values() if type(block).__name__ == "Stage")
    if isinstance(call, dict) and call.get("component_id") == "STAGE":
        call = {**call, "component_id": stage}
    body = json.dumps(call).encode()
    status, _, said = request(page, "POST", "/gradio_api/component_server", body, Content_Type="application/json")
    assert status == 400 and b"no such function" in said


@pytest.mark.parametrize(
    "body", [{}, {"fn_index": 10**6}, {"fn_index": "x"}, {"fn_index": None}, {"data": 3}, {"data": None}]
)
def test_events_that_there_are_not_leave_no_traceback(page, body, capfd):
    sent = {"data": [], "session_hash": "x", **body}
    for path in ("queue/join", "call/nothing", "call/v2/nothing", "run/nothing"):
        status, _, said = request(page, "POST", f"/gradio_api/{path}", sent)
        assert status in (200, 404, 422) and b"Traceback" not in said


def test_no_stub_file_is_written_into_the_package():
    assert not list(Path(vit_demo.__file__).parent.rglob("*.pyi"))
