"""Requests that made Gradio fetch URLs, keep what nobody collects, change the page or log a traceback."""

import base64
import gc
import json
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from types import CoroutineType
from typing import Any

import pytest
from PIL import Image

from vit_demo.service.engine import get_engine
from vit_demo.web import server
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import event_checks, visitor
from vit_demo.web.requests.parse import drawing_source, example_source, image_source
from vit_demo.web.requests.payload import data_url
from vit_demo.web.server import launch
from vit_demo.weights import PRESETS

from ...asynchronous import PATIENCE, a_moment, until
from ..http_requests import connect, event, number_of, request, wait_until_idle


@pytest.fixture
def patient(monkeypatch):
    """A busy machine may open a stream late."""
    monkeypatch.setattr(visitor, "STREAM_SECONDS", PATIENCE)


@pytest.fixture(autouse=True)
def _uncleaned(monkeypatch):
    """The server's own round, which forgets what nobody collects, does not come between."""
    monkeypatch.setattr(server, "forget_ended", lambda _: None)


def join(page, **fields) -> tuple[int, bytes]:
    body = {"data": [], "fn_index": number_of(page, "presets"), "session_hash": secrets.token_hex(8), **fields}
    status, _, reply = request(page, "POST", "/gradio_api/queue/join", body)
    return status, reply


@pytest.mark.parametrize(
    "url", ["http://1.1.1.1/", "HTTPS://example.com/a.png", "%68ttp://1.1.1.1/", " http://1.1.1.1/", "ftp://1.1.1.1/"]
)
@pytest.mark.parametrize("route", ["/gradio_api/file=", "/gradio_api/file/", "/file="])
def test_no_url_is_fetched_in_the_place_of_a_file(page, route, url, monkeypatch):
    fetched: list[str] = []

    async def fetch(url, request):
        fetched.append(url)

    monkeypatch.setattr("gradio.routes.secure_url_stream_response", fetch)
    assert request(page, "GET", route + url.replace(" ", "%20"))[0] == 404 and not fetched


@pytest.mark.parametrize("session", ["x" * 65, "", "a b", "../a", "é", 5, [], {}, True])
def test_a_session_has_a_short_plain_name(page, session):
    status, reply = join(page, session_hash=session)
    assert status == 400 and b"session_hash has up to 64" in reply
    assert all(len(found) <= 64 for found in page._queue.pending_messages_per_session)


def left_by(page, session: str) -> list[Any]:
    """The messages of a session that nobody has collected."""
    return list(page._queue.pending_messages_per_session[session]._queue)


def under_way(page) -> set[str]:
    """The sessions whose events Gradio has not ended, which is later than their last messages."""
    return {each.session_hash for each in page._queue.event_ids_to_events.values()}


def test_a_result_that_nobody_collects_is_dropped(page, monkeypatch):
    monkeypatch.setattr(visitor, "STREAM_SECONDS", 0.3)
    assert join(page, session_hash="nobody")[0] == 200
    until(lambda: [one.msg for one in left_by(page, "nobody")][-1:] == ["process_completed"])
    until(lambda: "nobody" not in under_way(page))
    *_, last = left_by(page, "nobody")
    assert last.success is False and "Nobody waited" in last.output["error"]
    event_checks.forget_ended(page)
    assert "nobody" not in page._queue.pending_messages_per_session
    assert "nobody" not in page._queue.pending_event_ids_session


def test_a_result_waits_for_its_stream(page, patient):
    assert join(page, session_hash="late")[0] == 200
    a_moment()
    event_checks.forget_ended(page)
    assert b"tabby cat" in request(page, "GET", "/gradio_api/queue/data?session_hash=late")[2]


def test_few_results_wait_for_their_streams_and_the_oldest_goes_first(page, patient, monkeypatch):
    monkeypatch.setattr(visitor, "MAX_UNCOLLECTED", 2)
    for session in ("first", "second", "third"):
        assert join(page, session_hash=session)[0] == 200
        until(
            lambda session=session: len(visitor._uncollected) == min(2, ["first", "second", "third"].index(session) + 1)
        )
    until(lambda: left_by(page, "first")[-1].msg == "process_completed")
    for session in ("second", "third"):
        assert b"tabby cat" in request(page, "GET", f"/gradio_api/queue/data?session_hash={session}")[2]


def test_a_session_leaves_few_messages(page, monkeypatch):
    monkeypatch.setattr(visitor, "STREAM_SECONDS", 0.0)
    monkeypatch.setattr(event_checks, "MAX_MESSAGES", 10)
    found = []
    for _ in range(8):
        found.append(join(page, session_hash="one"))
        wait_until_idle(page)
    assert found[0][0] == 200 and found[-1][0] == 429 and b"Collect the results" in found[-1][1]
    assert len(left_by(page, "one")) <= 10 + 4
    monkeypatch.undo()
    assert "tabby cat" in event(page, number_of(page, "presets"), []), "others are not refused"


def test_sessions_that_have_ended_are_forgotten_before_gradio_drops_those_under_way(page, patient, monkeypatch):
    event_checks.forget_ended(page)
    before = under_way(page)  # left by other tests
    monkeypatch.setattr(event_checks, "MAX_SESSIONS", 5)
    assert join(page, session_hash="waits")[0] == 200
    bad = {"data": [1, 2, 3]}  # fails before its function is called
    for _ in range(20):
        assert join(page, **bad)[0] == 200
        until(lambda: under_way(page) <= {"waits"} | before)
    assert len(page._queue.pending_messages_per_session) <= 5 + 2 + len(before)
    assert b"tabby cat" in request(page, "GET", "/gradio_api/queue/data?session_hash=waits")[2]


def test_streams_that_break_off_leave_nothing_running(page, monkeypatch, capfd):
    monkeypatch.setattr(page._queue, "get_events", lambda: None)  # so that the event stays in the queue
    assert join(page, session_hash="stuck")[0] == 200
    streams, before = [], len(heartbeats())
    for status in (b"200", b"404", b"404"):
        stream = connect(page)
        stream.sendall(b"GET /gradio_api/queue/data?session_hash=stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert stream.recv(12) == b"HTTP/1.1 " + status, "one stream collects the results of a session"
        streams.append(stream)
    until(lambda: len(heartbeats()) == before + 1)
    for stream in streams:
        stream.close()
    until(lambda: len(heartbeats()) <= before)
    assert "KeyError" not in capfd.readouterr().err


def heartbeats() -> list[Any]:
    """What Gradio runs beside each stream."""
    coroutines = [one for one in gc.get_objects() if type(one) is CoroutineType]
    return [one for one in coroutines if one.__name__ == "heartbeat" and one.cr_frame is not None]


def test_events_do_not_change_the_components_of_the_page(page, monkeypatch):
    monkeypatch.setattr(visitor, "STREAM_SECONDS", 0.0)
    parents = {number: block.parent for number, block in page.blocks.items()}
    for number in page.blocks:
        assert join(page, trigger_id=number)[0] == 200
    assert join(page, trigger_id=float("nan"))[0] == 200
    wait_until_idle(page)
    assert {number: block.parent for number, block in page.blocks.items()} == parents


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "vit_demo/request", '{"kind": "model", "name": "\\ud800/x"}', b"not valid Unicode"),
        ("POST", "vit_demo/photo", None, b"needs a Content-Length"),
        ("POST", "queue/join", '{"data": [], "session_hash": "a", "fn_index": 0, "\\udfff": 1}', b"not valid Unicode"),
        ("POST", "run/presets", '{"data": [], "fn_index": 9999}', b"Not found"),
        ("POST", "call/v2/predict", "{}", b"/predict takes an object with image"),
        ("POST", "call/v2/predict", '{"image": "a", "nothing": 1}', b"/predict takes an object with image"),
        ("POST", "call/v2/predict", "[]", b"/predict takes an object with image"),
        ("GET", "file=" + "a" * 5000, None, b"Not found"),
    ],
)  # fmt: skip
def test_what_gradio_cannot_handle_is_refused_in_words(page, method, path, body, words, capfd):
    body = body and body.encode()
    status, _, reply = request(page, method, f"/gradio_api/{path}", body, Content_Type="application/json")
    assert 400 <= status < 500 and words in reply
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["queue/data?session_hash=nobody", "call/predict/nothing"])
def test_the_stream_of_an_unknown_session_is_refused_in_words(page, path, capfd):
    status, _, reply = request(page, "GET", f"/gradio_api/{path}")
    assert status == 404 and b"There are no results to collect" in reply
    a_moment()  # the server logs after the reply
    assert "Traceback" not in capfd.readouterr().err


def test_long_names_and_headers_are_refused(page):
    assert request(page, "GET", "/assets/" + "a" * 5000)[0] == 404
    assert request(page, "GET", "/", X_Other="a" * 5000)[0] == 431
    assert request(page, "GET", "/", Cookie="a" * 5000)[0] == 200, "other sites of the host may have set cookies"


def test_no_header_evades_the_quota_of_uploads():
    page = launch("127.0.0.1", wait=False)
    replies = []
    for number in range(8):
        with connect(page) as connection:
            head = f"Host: localhost\r\nX-Forwarded-For: 203.0.113.{number}\r\nContent-Length: 49000000\r\n"
            kind = "Content-Type: multipart/form-data; boundary=b\r\nExpect: 100-continue\r\n"
            connection.sendall(f"POST /gradio_api/upload HTTP/1.1\r\n{head}{kind}\r\n".encode())
            replies.append(connection.recv(12)[9:])
    page.close()
    assert replies == [b"100"] * 6 + [b"429"] * 2


def test_no_digit_and_no_example_waits_while_picture_files_are_decoded(page, monkeypatch):
    release = threading.Event()

    def decode(data: bytes) -> Image.Image:
        release.wait(PATIENCE)
        return Image.new("RGB", (28, 28), "white")

    monkeypatch.setattr("vit_demo.images.decode_image", decode)
    for number in range(4):
        picture = f"data:image/png;base64,{base64.b64encode(b'%d' % number).decode()}"
        assert request(page, "POST", "/gradio_api/call/predict", {"data": [picture, "digits-tiny", 0]})[0] == 200
        source = image_source(picture)
        assert source.pool(PRESETS["digits-tiny"]) == "files"
    try:
        source = drawing_source(data_url(example_picture(4)))
        with ThreadPoolExecutor(1) as pool:
            digit = pool.submit(get_engine().explore_source, source, PRESETS["digits-tiny"], 7)
            assert digit.result().top(1)[0][0] == "4"
            photo = pool.submit(get_engine().explore_source, example_source("cat"), PRESETS["photos-tiny"], 15)
            assert photo.result().top(1)[0][0] == "tabby cat"
    finally:
        release.set()


def test_inputs_left_out_at_the_end_take_their_defaults_and_too_many_are_refused(page):
    picture = data_url(example_picture(3))
    for name, given in (("predict", [picture, "digits-tiny"]), ("explain", [picture, "digits-tiny"])):
        number = number_of(page, name)
        declared = page.fns[number].inputs
        assert len(declared) >= len(given)
        whole = [*given, *(one.value for one in declared[len(given) :])]
        expected = json.loads(event(page, number, whole))
        assert expected[-1][0] == "process_completed" and expected[-1][2] is None, name
        assert json.loads(event(page, number, given))[-1][1][0]["label"] == expected[-1][1][0]["label"]
        assert "do not match the endpoint" in event(page, number, [*whole, None])
        assert "There is no picture" in event(page, number, [])
