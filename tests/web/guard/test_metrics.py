"""What an operator sees: metrics for who has the token, a line and an id for each request, and when to try again."""

import io
import json
import logging
import re
import secrets

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import JSONResponse

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import bodies, log, metrics
from vit_demo.web.guard.metrics import Measured
from vit_demo.web.guard.quota import Pace
from vit_demo.web.requests.payload import data_url

from ... import asynchronous
from ...asynchronous import until
from ..http_requests import ask, request


@pytest.fixture
def token(monkeypatch):
    monkeypatch.setenv("VIT_DEMO_METRICS", "secret")
    return {"Authorization": "Bearer secret"}


def samples(page, token) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels."""
    status, headers, text = request(page, "GET", "/metrics", **token)
    assert status == 200 and headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(text.decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def draw(page) -> None:
    source = {"drawing": data_url(example_picture(3)), "preset": "digits-small", "patch_size": 7, "fit": "crop"}
    while b'"result"' not in ask(page, {"kind": "result", "source": source})[1]:
        pass


def test_metrics_are_closed_without_the_token(page, monkeypatch):
    closed = request(page, "GET", "/nothing")
    assert request(page, "GET", "/metrics")[0] == closed[0] == 404
    monkeypatch.setenv("VIT_DEMO_METRICS", "secret")
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}, {"Authorization": "Bearer \xe9"}):
        status, _, body = request(page, "GET", "/metrics", **given)
        assert (status, body) == (404, closed[2])


def test_metrics_count_requests_work_and_bytes(page, token, empty_replies):
    before = samples(page, token)
    draw(page)
    ask(page, {"kind": "no such kind"})
    ask(page, {"kind": ["result"]})
    assert request(page, "GET", "/gradio_api/queue/data?session_hash=unknown")[0] == 404
    after = samples(page, token)

    def grown(*key: str) -> float:
        return after.get(key, 0) - before.get(key, 0)

    assert grown("vit_demo_requests_total", "result", "200") >= 1
    assert grown("vit_demo_request_seconds_sum", "result") > 0
    assert grown("vit_demo_requests_total", "queue", "404") == 1
    assert grown("vit_demo_refusals_total", "There are no results to collect, or another stream collects them.") == 1
    assert grown("vit_demo_requests_total", "metrics", "200") == 1
    assert grown("vit_demo_jobs_total", "digits") >= 1 and grown("vit_demo_job_seconds_total", "digits") > 0
    assert after["vit_demo_queued_jobs", "digits"] == 0 == after["vit_demo_refused_jobs_total", "digits"]
    for cache in ("networks", "results", "replies"):
        assert after["vit_demo_cache_bytes", cache] > 0, cache
    assert after["process_cpu_seconds_total",] > 0
    assert all("no such kind" not in key for key in after), "no visitor makes a series"


def run(app, **scope) -> list[dict]:
    """The messages of an ASGI application's response."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.disconnect"}

    about = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("198.51.100.7", 5), **scope}
    asynchronous.run(app(about, receive, send))
    return sent


def headers_of(messages: list[dict]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in messages[0]["headers"]}


@pytest.mark.parametrize(("status", "wait"), [(429, "5"), (503, "5"), (404, None), (200, None)])
def test_every_429_and_503_says_when_to_try_again(status, wait):
    found = headers_of(run(Measured(JSONResponse({}, status))))
    assert found.get("retry-after") == wait and re.fullmatch("[0-9a-f]{16}", found["x-request-id"])
    assert headers_of(run(Measured(JSONResponse({}, status, {"retry-after": "9"}))))["retry-after"] == "9"


def test_who_is_too_fast_learns_how_long_to_wait():
    now = 0.0
    pace = Pace(1 / 60, 2, 0.0, clock=lambda: now)
    pace.wait("a", 2)
    with pytest.raises(bodies.RequestRefused) as refused:
        pace.wait("a")
    assert refused.value.wait == pytest.approx(60)
    now += refused.value.wait
    assert pace.wait("a") == pytest.approx(0)


def test_the_guard_says_it_as_well(page, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    monkeypatch.setattr("vit_demo.web.guard.security.MAX_REQUESTS_OF_ONE", 0)
    status, headers, body = request(page, "GET", "/healthz", X_Forwarded_For="198.51.100.8")
    assert status == 429 and headers["retry-after"] == "5" and json.loads(body)["error"].endswith(".")


@pytest.fixture
def lines(monkeypatch):
    """What is logged as JSON of requests that begin in this test, and of none."""
    logger, stream, begun = logging.getLogger("vit_demo"), io.StringIO(), {""}
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log.JsonLines())
    handler.addFilter(lambda _: log.request_id.get() in begun)
    logger.addHandler(handler)

    def begin(count: int) -> str:
        begun.add(name := secrets.token_hex(count))
        return name

    monkeypatch.setattr(metrics, "token_hex", begin)
    monkeypatch.setattr(logging.getLogger("vit_demo.web.guard.metrics"), "level", logging.INFO)
    logging.getLogger("vit_demo.web.guard.metrics").manager._clear_cache()

    def wait_for(count: int) -> list[dict]:
        until(lambda: stream.getvalue().count("\n") >= count)
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield wait_for
    logger.removeHandler(handler)
    logging.getLogger("vit_demo.web.guard.metrics").manager._clear_cache()


def test_a_request_is_one_line_without_what_it_holds(page, lines):
    path = "/gradio_api/call/explain/secret-event"
    _, headers, _ = request(page, "GET", path)
    (line,) = lines(1)
    assert line["request"] == headers["x-request-id"] and line["level"] == "INFO"
    assert (line["kind"], line["method"], line["status"], line["address"]) == ("call", "GET", 404, "")
    assert line["ms"] > 0 and line["refusal"] and "secret-event" not in json.dumps(line)


HUGE = "x" * 20_000


@pytest.mark.parametrize(
    "scope",
    [
        {"method": HUGE},
        {"method": "GET\u202e" + HUGE},
        {"path": f"/{HUGE}"},
        {"path": f"/gradio_api/call/{HUGE}"},
        {"query_string": HUGE.encode()},
        {"root_path": HUGE, "path": HUGE},
        {"client": (HUGE, 5)},
        {"headers": [(b"x-forwarded-for", HUGE.encode())]},
        {"headers": [(b"x-request-id", HUGE.encode()), (b"user-agent", HUGE.encode())]},
        {"state": {"kind": HUGE}},
        {"state": {"refusal": HUGE}},
    ],
    ids=lambda scope: " ".join(scope),
)
@pytest.mark.parametrize("status", [200, 404])
def test_no_field_of_a_line_is_longer_than_a_line_may_be(scope, status, lines, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1" if "headers" in scope else "0")
    run(Measured(JSONResponse({}, status)), **scope)
    (line,) = lines(1)
    assert all(len(value) <= log.MAX_LINE_LENGTH for value in line.values() if isinstance(value, str)), line
    assert line["method"] == ("other" if "method" in scope else "GET")


def test_every_method_that_is_open_has_its_name_in_the_log(lines):
    known = ["GET", "HEAD", "POST", "OPTIONS", "DELETE"]
    for method in (*known, "get", "BREW", ""):
        run(Measured(JSONResponse({})), method=method)
    assert [line["method"] for line in lines(8)] == [*known, *["other"] * 3]


def test_every_text_of_a_record_is_cut_and_on_one_line(lines):
    about = dict.fromkeys(("kind", "method", "refusal", "address", "one that is added later"), f"a\n{HUGE}")
    logging.getLogger("vit_demo.web.guard.metrics").info(HUGE, extra={"fields": about})
    (line,) = lines(1)
    assert about.keys() <= line.keys() and all(len(value) <= 300 for value in line.values())


def test_a_failure_is_one_line_with_the_id_of_its_request(page, lines, monkeypatch, empty_replies):
    def fail(*_, **__):
        raise RuntimeError("first\nsecond \x1b")

    monkeypatch.setattr("vit_demo.web.requests.kinds.payload", fail)
    source = {"drawing": data_url(example_picture(4)), "preset": "digits-small", "patch_size": 7, "fit": "crop"}
    assert b"Something went wrong" in ask(page, {"kind": "result", "source": source})[1]
    error, line = lines(2)
    assert error["level"] == "ERROR" and "second" in error["traceback"] and "\x1b" not in error["traceback"]
    assert line["request"] == error["request"] and line["kind"] == "result"


def test_who_has_the_whole_response_finds_it_counted(lines):
    async def streaming(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})

    seen = []

    async def send(message):
        seen.append(len(lines(0)))

    about = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("198.51.100.7", 5)}
    asynchronous.run(Measured(streaming)(about, None, send))
    assert seen == [0, 0, 1] and len(lines(1)) == 1


def test_an_application_that_fails_counts_as_500(lines):
    async def failing(scope, receive, send):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run(Measured(failing))
    assert lines(1)[0]["status"] == 500


def test_a_request_without_a_response_counts_as_499(lines):
    async def silent(scope, receive, send):
        assert (await receive())["type"] == "http.disconnect"

    assert run(Measured(silent)) == [] and lines(1)[0]["status"] == 499


def test_the_log_is_json_only_if_that_is_set(monkeypatch):
    root = logging.getLogger()
    kept = root.handlers[:]
    config = dict(log.LOGGING_CONFIG["formatters"])
    try:
        log.install()
        assert root.handlers == kept
        monkeypatch.setenv("VIT_DEMO_LOG", "json")
        log.install()
        (handler,) = root.handlers
        assert isinstance(handler.formatter, log.JsonLines)
        assert log.LOGGING_CONFIG["formatters"]["default"] == {"()": log.JsonLines}
    finally:
        root.handlers[:] = kept
        log.LOGGING_CONFIG["formatters"].update(config)
        logging.getLogger("vit_demo.web.guard.metrics").setLevel(logging.NOTSET)
