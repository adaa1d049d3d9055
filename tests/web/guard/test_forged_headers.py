"""Headers that a visitor may choose: none decides what others get, and none makes the server fail or work for long."""

import json

import gradio as gr
import gradio.routes
import pytest

from benchmarks import heaviest
from vit_demo.web.frontend import modules
from vit_demo.web.guard import event_checks

from ..http_requests import ask, connect, event, number_of, png, request, upload

MENU = {"kind": "models"}


@pytest.mark.parametrize("name", ["X_Forwarded_Host", "X_Gradio_Server", "Host"])
def test_no_header_decides_where_the_api_is_for_others(page, name, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    forged = "http://evil.example" if name == "X_Gradio_Server" else "evil.example"
    assert request(page, "GET", "/gradio_api/info", **{name: forged})[0] == 200
    for path in ("/gradio_api/info", "/"):
        status, _, reply = request(page, "GET", path)
        assert status == 200 and b"evil.example" not in reply


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/config", {"Host": "a b"}, 400),
        ("/", {"X_Gradio_Server": "http://a:b"}, 200),
        ("/?page=nothing", {}, 404),
        ("/assets/" + "a/" * 4000, {}, 404),
        ("/assets/PlotlyPlot-D9Pvz5DK.js", {"Accept_Encoding": "gzip"}, 404),
    ],
)
def test_what_would_fail_in_gradio_is_refused(page, path, headers, expected, capfd):
    assert request(page, "GET", path, **headers)[0] == expected
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("extra", ["", "Origin: http://evil.example\r\n"])
def test_a_health_check_needs_no_host(page, extra, capfd):
    with connect(page) as connection:
        connection.sendall(f"GET /healthz HTTP/1.0\r\n{extra}\r\n".encode())
        assert connection.recv(100).split()[1] == b"200"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("value", ["bytes=1-2-3", "bytes=²-³", "bytes=0-0,2-2", "lines=1-2"])
def test_a_range_that_is_none_gets_the_whole_file(page, value, capfd):
    [path] = json.loads(upload(page, png())[1])
    status, _, reply = request(page, "GET", f"/gradio_api/file={path}", Range=value.encode())
    assert status == 200 and reply == png()
    assert request(page, "GET", f"/gradio_api/file={path}", Range="bytes=1-3")[2] == b"PNG"
    assert "Traceback" not in capfd.readouterr().err


def test_uploads_are_not_compressed(page):
    [path] = json.loads(upload(page, b"ab" * 50_000, name="a.txt")[1])
    _, headers, reply = request(page, "GET", f"/gradio_api/file={path}", Accept_Encoding="gzip, br")
    assert "content-encoding" not in headers and len(reply) == 100_000


FILE_PART = 'Content-Disposition: form-data; name="files"; filename="a.png"'


@pytest.mark.parametrize(
    ("content_type", "part", "expected"),
    [
        ("multipart/form-data; boundary=b; charset=punycode", 'name="files"; filename="a.png"', 415),
        ("multipart/form-data; boundary=b; CHARSET=undefined", 'name="files"; filename="a.png"', 415),
        ("multipart/form-data; boundary=" + "b" * 71, 'name="files"; filename="a.png"', 415),
        ("multipart/form-data", 'name="files"; filename="a.png"', 415),
        ("text/plain", 'name="files"; filename="a.png"', 415),
        ("multipart/form-data; boundary=b", 'name="files"', 400),
        ("multipart/form-data; boundary=b", 'name="note"', 400),
        ("multipart/form-data; boundary=b", f'name="note"\r\n\r\nwords\r\n--b\r\n{FILE_PART}', 400),
        ('multipart/form-data; boundary="b"', 'name="files"; filename="a.png"', 200),
    ],
)
def test_an_upload_is_nothing_but_files(page, content_type, part, expected, capfd):
    body = f"--b\r\nContent-Disposition: form-data; {part}\r\n\r\nwords\r\n--b--\r\n".encode()
    status, _, reply = request(page, "POST", "/gradio_api/upload", body, Content_Type=content_type)
    assert status == expected, reply
    assert "Traceback" not in capfd.readouterr().err


def test_an_upload_that_breaks_off_logs_no_traceback(page, capfd):
    head = "POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    with connect(page) as connection:
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n--b\r\nContent-".encode())
    assert request(page, "GET", "/healthz")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


EVIL = "http://evil.example"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site", "Origin": EVIL}, 403),
        ({"Sec_Fetch_Site": "same-site", "Origin": "http://evil.localhost"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Origin": EVIL}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "http://page.example.evil.example", "Host": "page.example"}, 403),
        ({"Origin": EVIL, "X_Forwarded_Host": "evil.example"}, 403),
        ({"Origin": "http://laptop:7860", "Host": "Laptop:7860"}, 200),
        ({"Origin": "https://page.example", "Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({}, 200),
    ],
)
def test_pages_of_other_sites_cannot_use_the_server(page, monkeypatch, headers, status):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1" if headers.get("Host") == "page.example" else "0")
    found, reply = ask(page, MENU, **headers)
    assert found == status and (b"Pages of other sites" in reply) == (status == 403)
    assert request(page, "POST", "/gradio_api/vit_demo/photo", png(), **headers)[0] == status
    if status == 403 and "Origin" in headers:
        monkeypatch.setenv("VIT_DEMO_ALLOWED_ORIGINS", headers["Origin"])
        assert ask(page, MENU, **headers)[0] == 200


def test_behind_a_proxy_the_origin_is_that_of_the_forwarded_host(page, monkeypatch):
    sent = {"Origin": "https://page.example", "Host": "inside:7860", "X_Forwarded_Host": "page.example, inside"}
    assert ask(page, MENU, **sent)[0] == 403
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    assert ask(page, MENU, **sent)[0] == 200
    assert ask(page, MENU, **{**sent, "Origin": "http://inside:7860"})[0] == 403


@pytest.mark.parametrize("kind", ["text/plain", "text/plain; x=application/json", "application/jsonp", ""])
@pytest.mark.parametrize("path", ["vit_demo/request", "vit_demo/live", "queue/join", "call/predict", "mcp/"])
def test_json_is_read_only_where_it_is_announced(page, path, kind):
    """A page of another site sends the other types without asking the server first."""
    status, _, reply = request(page, "POST", f"/gradio_api/{path}", json.dumps(MENU).encode(), Content_Type=kind)
    assert status == 415 and b"Content-Type: application/json" in reply
    assert ask(page, MENU, Content_Type="Application/JSON; charset=utf-8")[0] == 200


def test_a_new_session_costs_nothing(page):
    for _ in range(5):
        assert "tabby cat" in event(page, number_of(page, "presets"), [])
    assert list(page.app.state_holder.session_data) in ([], [""])


def test_pages_of_other_programs_keep_a_state_for_each_session(page):
    with gr.Blocks() as other:
        gr.State()
    holder = gradio.routes.StateHolder()
    holder.set_blocks(other)
    assert holder["one"] is not holder["two"]


@pytest.mark.parametrize("headers", ["Host:", "Host: x\r\nX-Forwarded-Host:"])
def test_an_empty_host_is_none(page, headers):
    with connect(page) as connection:
        connection.sendall(f"GET /config HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(100).split()[1] == b"200"


def test_cancelling_fills_no_session_queue(page, monkeypatch):
    monkeypatch.setattr(event_checks, "MAX_MESSAGES", 0)
    body = {"session_hash": "canceller", "fn_index": 0, "event_id": "a"}
    joined = {"data": [], "fn_index": number_of(page, "presets"), "session_hash": "canceller"}
    assert request(page, "POST", "/gradio_api/queue/join", joined)[0] == 200
    status, _, reply = request(page, "POST", "/gradio_api/cancel", body)
    assert status == 429 and b"Collect the results" in reply


FORWARDED = {"X_Forwarded_Host": "other.example", "X_Forwarded_Proto": "https", "X_Forwarded_Prefix": "/x"}


def test_forwarded_headers_count_only_where_a_proxy_is_announced(page, monkeypatch):
    plain = request(page, "GET", "/config")[2]
    assert request(page, "GET", "/config", Forwarded="host=other.example", **FORWARDED)[2] == plain
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    assert b"https://other.example" in request(page, "GET", "/config", **FORWARDED)[2]


def test_what_names_the_address_of_the_server_is_in_no_shared_cache(page, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    naming = set()
    for path in heaviest.READ:
        _, headers, reply = request(page, "GET", path.format(n=1), X_Forwarded_Host="other.example")
        if b"other.example" in reply:
            naming.add(path)
            assert "private" in headers.get("cache-control", ""), path
    assert {"/", "/config", f"{modules.PREFIX}/see/digit-8"} <= naming


@pytest.mark.parametrize("forged", ["a:b", "["])
def test_a_forwarded_host_that_is_none_is_refused(page, forged, monkeypatch, capfd):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    for path in ("/config", "/gradio_api/mcp/"):
        assert request(page, "GET", path, X_Forwarded_Host=forged)[0] == 400
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.com"])
def test_a_name_that_another_site_lets_point_to_this_machine_is_refused(page, host, monkeypatch):
    for path in ("/", "/config", "/healthz"):
        status, _, reply = request(page, "GET", path, Host=host)
        assert status == 421 and b"Open this page at localhost" in reply
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    assert request(page, "GET", "/healthz", Host=host)[0] == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "page.localhost:7", "127.0.0.1", "[::1]:80", "laptop"])
def test_names_of_this_machine_are_answered(page, host):
    assert request(page, "GET", "/healthz", Host=host)[0] == 200
