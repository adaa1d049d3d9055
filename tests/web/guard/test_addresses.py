"""Whose request it is: one function says it, whatever a proxy writes."""

from typing import Any

import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from vit_demo.web.guard.headers import client_address

from ...asynchronous import run


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("VIT_DEMO_PROXY", "SPACE_ID"):
        monkeypatch.delenv(name, raising=False)


def address(*forwarded: str, client: tuple[str, int] | None = ("10.0.0.1", 1)) -> str:
    headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    return client_address({"type": "http", "client": client, "headers": headers})


def test_behind_a_proxy_visitors_are_told_apart_and_cannot_pretend(monkeypatch):
    assert address("203.0.113.7") == "10.0.0.1", "without a proxy anybody could write the header"
    monkeypatch.setenv("SPACE_ID", "a/b")
    monkeypatch.setenv("VIT_DEMO_PROXY", "0")
    assert address("203.0.113.7") == "10.0.0.1", "the operator decides"
    monkeypatch.delenv("VIT_DEMO_PROXY")
    assert address() == "10.0.0.1" and address("203.0.113.7") == "203.0.113.7"
    assert address("2001:db8::1") == address("2001:db8::ff:2") != address("2001:db8:0:1::1"), "a /64 is one visitor's"
    assert address("made up, 203.0.113.7") == address("made up", "203.0.113.7") == "203.0.113.7"


@pytest.mark.parametrize(
    "written",
    ["203.0.113.7", "::ffff:203.0.113.7", "::FFFF:cb00:7107", " 203.0.113.7 ", "203.0.113.7:4711",
     "[::ffff:203.0.113.7]", "[::ffff:203.0.113.7]:4711", "::ffff:203.0.113.7%eth0", '"203.0.113.7"',
     "203.0.113.8, 203.0.113.7"],
)  # fmt: skip
def test_an_address_is_the_same_however_it_is_written(written, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    assert address(written) == "203.0.113.7"
    monkeypatch.setenv("VIT_DEMO_PROXY", "0")
    if "," not in written:
        assert address(client=(written, 1)) == "203.0.113.7", "of a socket that takes both versions"


@pytest.mark.parametrize("written", ["unknown", "_hidden", "a" * 4000, "1.2.3.4.5", "::ffff:", "[", ":", "é"])
def test_what_is_no_address_is_one_visitor(written, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    assert address(written) == "unknown"


@pytest.mark.parametrize("written", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_this_machine_has_no_limits_only_without_a_proxy(written, monkeypatch):
    assert address(client=(written, 1)) == "" == address("203.0.113.7", client=(written, 1))
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    assert address(written) and address(client=(written, 1))


def test_the_number_of_proxies_says_which_address_is_the_visitors(monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "2")
    assert address("192.0.2.66, 203.0.113.7, 198.51.100.1") == "203.0.113.7"
    assert address("192.0.2.66", "203.0.113.7", "198.51.100.1") == "203.0.113.7"
    assert address("203.0.113.7") == "203.0.113.7", "of one who calls the inner proxy"


def test_the_header_counts_for_no_visitor_where_uvicorn_believes_it(monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "0")
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(client_address(scope))

    believing = ProxyHeadersMiddleware(app)  # uvicorn's default: local processes may say who they are
    headers = [(b"x-forwarded-for", b"203.0.113.7")]
    run(believing({"type": "http", "client": ("127.0.0.1", 5), "headers": headers, "scheme": "http"}, None, None))
    run(believing({"type": "http", "client": ("10.0.0.1", 5), "headers": headers, "scheme": "http"}, None, None))
    run(believing({"type": "http", "client": None, "headers": headers, "scheme": "http"}, None, None))  # Unix socket
    assert seen == ["", "10.0.0.1", ""]
