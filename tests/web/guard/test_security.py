"""Attacks on the server over HTTP, one for each promise of ``SECURITY.md``."""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import bodies, uploads
from vit_demo.web.requests.kinds import KINDS, RequestKind
from vit_demo.web.requests.payload import data_url

from ...asynchronous import run as run_coroutine
from ..http_requests import ask, connect, event, guarded, number_of, request, upload

DRAWING = data_url(example_picture(3))


def inputs_of(page) -> Iterator[tuple[int, list[Any]]]:
    """Every event of the page with valid inputs."""
    plain = {
        "dropdown": "digits-tiny", "textbox": "", "file": DRAWING, "number": -1,
    }  # fmt: skip
    for number, function in page.fns.items():
        yield (
            number,
            [plain.get(type(block).__name__.lower(), plain.get(block.get_block_name())) for block in function.inputs],
        )


def wrapped(path: str) -> list[Any]:
    """Ways in which an attacker could send a path."""
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


def without_paths(reply: str, *paths: str) -> str:
    """A reply without the paths that were sent, so that two replies can be compared."""
    reply = reply.replace("\\", "")  # escapes of Markdown
    for path in paths:
        reply = reply.replace(path, "PATH")
    return reply


@pytest.fixture
def not_uploaded():
    """Paths of the same length: a picture on the server that was not uploaded, and a file that does not exist.

    They are short, because messages cut long inputs off.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "seven.png")
        example_picture(7).save(path)
        yield str(path), str(Path(folder, "eight.png"))


def test_no_event_reads_a_file_of_the_server_or_reveals_whether_it_exists(page, not_uploaded):
    there, missing = not_uploaded

    def replies(case: tuple[int, list[Any], int, int]) -> list[str]:
        number, valid, place, wrap = case
        found = []
        for path in (there, missing):
            reply = event(page, number, [*valid[:place], wrapped(path)[wrap], *valid[place + 1 :]])
            reply = without_paths(reply, there, missing)
            found.append(reply if '"run"' not in reply else "a result of the other inputs")
        return found

    inputs = {page.fns[number].inputs[place]: (number, valid, place) for number, valid in inputs_of(page)
              for place in range(len(valid))}  # equal parameters of several endpoints are one component  # fmt: skip
    cases = [(*one, wrap) for one in inputs.values() for wrap in range(len(wrapped(there)))]
    assert len(inputs) > 15
    with ThreadPoolExecutor(4) as pool:  # each event spends most of its time waiting for Gradio's queue
        for case, (first, second) in zip(cases, pool.map(replies, cases), strict=True):
            assert first == second, case
    assert '"label": "3"' in event(page, number_of(page, "predict"), [DRAWING, "digits-tiny", 4]), "valid inputs work"


def with_field(kind: str, field: str, value: Any) -> dict[str, Any]:
    """A valid request, but for one field."""
    source = {"drawing": DRAWING, "preset": "digits-tiny", "patch_size": 4, "fit": "crop", "dropped": []}
    sent = {"kind": kind, "source": source, "method": "rollout", "name": "digits-tiny", "block": 0}
    if field in ("drawing", "digit", "example", "upload"):
        del source["drawing"]
    return {**sent, field: value} if field in sent else {**sent, "source": {**source, field: value}}


ABOUT_A_RESULT = [name for name, kind in KINDS.items() if isinstance(kind, RequestKind)]
ATTACKED = {
    **dict.fromkeys(ABOUT_A_RESULT, ("upload",)),
    "result": ("drawing", "digit", "example", "upload", "preset", "fit", "patch_size", "dropped"),
    "model": ("name", "kind"),
    "method_docs": ("method", "kind"),
}


@pytest.mark.parametrize("wrap", range(11))
def test_no_request_reads_a_file_of_the_server(page, not_uploaded, wrap):
    assert b"label" in ask(page, with_field("result", "fit", "crop"))[1], "a valid one works"
    for kind, field in ((kind, field) for kind, fields in ATTACKED.items() for field in fields):
        replies = []
        for path in not_uploaded:
            status, reply = ask(page, with_field(kind, field, wrapped(path)[wrap]))
            assert b'"result"' not in reply and b"done" not in reply, (kind, field)
            replies.append(f"{status} {without_paths(reply.decode(), *not_uploaded)}")
        assert replies[0] == replies[1], (kind, field)


def test_guessed_paths_in_the_upload_folder_reveal_nothing(page):
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
        status, _, reply = request(page, "POST", "/gradio_api/call/predict", body)
        if status == 200:
            _, _, reply = request(page, "GET", f"/gradio_api/call/predict/{json.loads(reply)['event_id']}")
            assert reply.startswith(b"event: error")
        assert uploads.NOT_AN_UPLOAD.encode() in reply or b'"error"' in reply
        assert b"hostname" not in reply and b"No such file" not in reply


def test_the_queue_cannot_be_bypassed(page):
    for path in ("run/predict", "api/predict", "component_server", "component_server/"):
        status, _, reply = request(page, "POST", f"/gradio_api/{path}", {"data": [None, "digits-tiny", 4]})
        assert status == 404 and b"label" not in reply


@pytest.mark.parametrize(
    "path", ["/upload", "/gradio_api/upload/", "/gradio_api//upload", "/gradio_api/vit_demo/photo/"]
)
def test_an_upload_has_one_address(page, path):
    body = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nwords\r\n--b--\r\n'
    status, _, reply = request(page, "POST", path, body, Content_Type="multipart/form-data; boundary=b")
    assert status in (404, 405), reply


@pytest.mark.parametrize(
    "path",
    ["/monitoring", "/monitoring/summary", "/gradio_api/deep_link?session_hash=x", "/gradio_api/proxy=http://localhost/",
     "/gradio_api/run-history/buckets", "/gradio_api/vibe-code/"],
)  # fmt: skip
def test_unused_routes_are_closed(page, path):
    assert request(page, "GET", path)[0] == 404


def test_bodies_are_bounded(page):
    joined = {"fn_index": 0, "session_hash": "x"}
    for data in (["x" * 20_000_000], [[0] * 200_000], [[[]] * 100_000]):
        status, _, reply = request(page, "POST", "/gradio_api/queue/join", {"data": data, **joined})
        assert status == 413 and b"send less" in reply
    deep = b'{"data": ' + b"[" * 15_000 + b"]" * 15_000 + b"}"
    for body in (deep, b"{", b"\xff\xfe", b"not json"):
        status, _, reply = request(page, "POST", "/gradio_api/queue/join", body, Content_Type="application/json")
        assert status == 400 and b"JSON" in reply


JSON_ROUTES = ("vit_demo/request", "queue/join", "call/predict", "call/v2/predict", "cancel", "reset", "mcp/")


@pytest.mark.parametrize("path", JSON_ROUTES)
@pytest.mark.parametrize(
    ("opened", "closed"), [("[", "]"), ('{"a": ', "}"), ('[{"source": ', "}]"), ('{"data": [', "]}")]
)
def test_json_is_nested_no_deeper_than_anything_can_handle(page, path, opened, closed, capfd):
    fields = '"kind": "model", "fn_index": 0, "session_hash": "x", "jsonrpc": "2.0", "id": 1, "method": "ping"'
    levels = sum(map(opened.count, "[{"))
    for depth, is_refused in ((bodies.MAX_DEPTH, True), (948, True), (bodies.MAX_DEPTH - 2 - levels, False)):
        inner = opened * (depth // levels) + "1" + closed * (depth // levels)
        body = f'{{{fields}, "name": {inner}}}'.encode()
        status, _, reply = request(page, "POST", f"/gradio_api/{path}", body, Content_Type="application/json")
        assert (b"nested too deeply" in reply) is is_refused, (depth, reply)
        assert status < 500
    assert "Traceback" not in capfd.readouterr().err


def test_every_response_has_the_security_headers(page):
    for path in ("/", "/config", "/healthz", "/theme.css", "/nothing"):
        _, headers, _ = request(page, "GET", path)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "strict-origin-when-cross-origin"
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'self' https://huggingface.co" in policy and "object-src 'none'" in policy
    _, reply = upload(page, b"<script>alert(1)</script>", name="a.html")
    _, headers, _ = request(page, "GET", f"/gradio_api/file={json.loads(reply)[0]}")
    assert "sandbox" in headers["content-security-policy"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_other_origins_are_not_allowed(page, origin, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
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
def test_invalid_arguments_get_a_message(page, data, capsys):
    reply = event(page, number_of(page, "predict"), data)
    assert (reply[4:] if reply.startswith("4") else json.loads(reply)[-1][2]).rstrip('"}').endswith(".")
    assert "Traceback" not in capsys.readouterr().err


def test_only_pngs_are_accepted_as_drawings(page):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (4000, 40), np.uint8))
    for sent in (data_url(noise), DRAWING.replace("png", "gif"), DRAWING[:-40], "data:image/png;base64,"):
        _, reply = ask(page, with_field("result", "drawing", sent))
        assert "The drawing" in json.loads(reply)["error"]


@pytest.mark.parametrize(
    "body", [{}, {"fn_index": 10**6}, {"fn_index": "x"}, {"fn_index": None}, {"data": 3}, {"data": None}]
)
def test_unknown_events_leave_no_traceback(page, body, capfd):
    sent = {"data": [], "session_hash": "x", **body}
    for path in ("queue/join", "call/nothing", "call/v2/nothing", "run/nothing"):
        status, _, reply = request(page, "POST", f"/gradio_api/{path}", sent)
        assert status in (200, 404, 422) and b"Traceback" not in reply


def test_values_are_counted_while_they_arrive_and_before_they_are_parsed():
    for body in (b"[" + b"[]," * 333_000 + b"[]]", b"{" * 500_000, b"[" + b"0," * 100_000 + b"0]"):
        read = []

        async def receive(body=body, read=read):
            read.append(body[60_000 * len(read) :][:60_000])
            return {"type": "http.request", "body": read[-1], "more_body": len(read) * 60_000 < len(body)}

        with pytest.raises(bodies.RequestRefused, match="send less"):
            run_coroutine(bodies.Arrivals().read("", receive))
        assert len(read) <= 2, "what is too much is not read to its end"


LENGTHS = {"0": 0, "17": 17, "9" * 15: 10**15 - 1}
NO_LENGTHS = [
    "",
    "abc",
    "\xb2",
    "9" * 16,
    "-1",
    "+1",
    "1.0",
    "1e3",
    "0x4",
    "4, 4",
    "4 4",
    "1_000",
    "04",
    "0" * 19 + "4",
    "00",
]


@pytest.mark.parametrize("claimed", [*LENGTHS, *NO_LENGTHS])
def test_a_length_is_a_number_in_one_spelling_or_refused(claimed):
    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", claimed.encode("latin-1"))]}
    if claimed in LENGTHS:
        assert bodies.content_length(scope) == LENGTHS[claimed]
        return
    for has_body in (True, False):
        with pytest.raises(bodies.RequestRefused) as refused:
            bodies.check_framing(scope, has_body)
        assert refused.value.status == 400 and refused.value.closes


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "DELETE"])
def test_no_spelling_of_a_length_passes_the_limits_on_bodies(page, method):
    for path in ("/healthz", "/gradio_api/vit_demo/request", "/gradio_api/upload"):
        with connect(page) as connection:
            start = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{start}Content-Length: 00000000000000000004\r\n\r\nnull".encode())
            with connection.makefile("rb") as file:
                status = file.readline().split()[1]
                assert status in (b"400", b"404")
                if status == b"400":
                    file.read()  # the server ends it


def test_a_file_of_the_server_is_refused_before_it_is_looked_up():
    reached: list[str] = []

    async def gradio_app(scope, receive, send):
        reached.append(scope["path"])

    async def refused(path: str) -> list[int]:
        sent: list[int] = []

        async def send(message):
            sent.append(message.get("status", 0))

        scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"x")], "query_string": b""}
        await guarded(gradio_app)(scope, None, send)
        return sent[:1]

    for file in ("/etc/hostname", "/etc/nothing", str(uploads.folder() / "x"), "https://example.com/a.png", "app.py"):
        for route in ("/gradio_api/file=", "/file=", "/gradio_api/file/"):
            assert run_coroutine(refused(route + file)) == [404], file
    assert not reached
    run_coroutine(refused(f"/gradio_api/file={uploads.folder() / ('0' * 64) / 'a.png'}"))
    assert len(reached) == 1


def test_an_error_that_no_upload_caused_says_nothing_of_a_full_disk():
    async def broken(*_):
        raise OSError("a bug")

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"x")], "query_string": b""}
    with pytest.raises(OSError, match="a bug"):
        run_coroutine(guarded(broken)(scope, None, None))


@pytest.mark.parametrize("path", ["/", "/config", "/config/"])
def test_no_cache_keeps_the_page_for_others(page, path):
    assert request(page, "GET", path)[1]["cache-control"] == "private, no-cache"


def test_what_the_browser_may_do_is_said_in_every_response(page, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    for path in ("/", "/healthz", "/nothing"):
        _, headers, _ = request(page, "GET", path, X_Forwarded_Proto="https")
        assert headers["strict-transport-security"] == "max-age=31536000" and "server" not in headers
        assert "camera=(self)" in headers["permissions-policy"] and "microphone=()" in headers["permissions-policy"]
        assert "strict-transport-security" not in request(page, "GET", path)[1], "without TLS"
    monkeypatch.setenv("VIT_DEMO_PROXY", "0")
    assert "strict-transport-security" not in request(page, "GET", "/", X_Forwarded_Proto="https")[1]
