"""What visitors send is logged as short lines without control characters, whichever library logs it."""

import asyncio
import errno
import io
import json
import logging
import socket

import pytest
from uvicorn.logging import DefaultFormatter

from vit_demo.web.guard import log, protocol

from ...asynchronous import run as run_apart
from ..http_requests import connect, request


@pytest.fixture(autouse=True)
def _heard(caplog):
    """Warnings of uvicorn are heard, whatever level a server of another test has set."""
    caplog.set_level(logging.WARNING, logger="uvicorn.error")


FORGED = "x\nINFO:     Application startup complete.\r\x1b[2J\u202e\u2028"


@pytest.mark.parametrize("formatter", [logging.Formatter("%(levelname)s: %(message)s"), DefaultFormatter()])
def test_no_text_forges_a_line_or_fills_the_log(page, formatter):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("some.library")
    logger.addHandler(handler)
    try:
        logger.warning("a tool %s is not listed", FORGED + "a" * 900_000)
        logger.warning(FORGED)
        assert stream.getvalue().count("\n") == 2 and len(stream.getvalue()) < 3 * log.MAX_LINE_LENGTH
        assert r"x\nINFO" in stream.getvalue() and r"\x1b" in stream.getvalue() and r"\u202e" in stream.getvalue()
        assert len(log.escaped("\u202e" * 900)) <= log.MAX_LINE_LENGTH, "however long an escaped character is"
        stream.truncate(stream.seek(0))
        try:
            raise ValueError(FORGED + "a" * 900_000)
        except ValueError:
            logger.exception("it failed")
        lines = stream.getvalue().splitlines()
        assert len(stream.getvalue()) < 2 * log.MAX_TRACEBACK_LENGTH
        assert all(line.startswith("  ") for line in lines[1:]), "none looks like a line of the log"
    finally:
        logger.removeHandler(handler)


def test_ordinary_lines_are_as_they_were(page, caplog):
    logging.getLogger("some.library").warning("café %d", 3)
    assert caplog.messages == ["café 3"]


def test_names_of_tools_are_not_in_the_log(page, caplog):
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    name = "x\nERROR:    forged " + "a" * 900_000
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    headers = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
    for _ in range(3):
        assert request(page, "POST", "/gradio_api/mcp/", json.dumps(body).encode(), **headers)[0] == 200
    more = [one for one in caplog.records if one.name != "uvicorn.access"]
    assert not more, "or else anyone could write a hundred lines a second"


@pytest.mark.parametrize(
    "sent", [b"GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n", b"%s\r\n\r\n"]
)
def test_bad_requests_of_any_kind_are_logged_once_a_minute(page, caplog, sent, monkeypatch):
    monkeypatch.setattr(protocol, "INVALID_SECONDS", 0.0)
    log._recent.clear()
    for upgrade in (b"websocket", b"h2c", b"x" * 3000):
        with connect(page) as connection:
            connection.sendall(sent % upgrade)
            assert connection.recv(12).startswith(b"HTTP/1.1 ")
    logged = [record.msg for record in caplog.records if record.name == "uvicorn.error"]
    assert logged and len(logged) == len(set(logged)), logged
    log._recent.clear()
    error = logging.getLogger("uvicorn.error")
    for _ in range(2):
        error.error("Exception in ASGI application")
    assert caplog.messages[-2:] == ["Exception in ASGI application"] * 2, "failures are all logged"


def test_that_no_connection_can_be_accepted_is_logged_once(caplog):
    async def attacked():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log.handle_error)
        log._recent.clear()
        with Full() as listening:
            for _ in range(3):
                loop._accept_connection(asyncio.Protocol, listening, backlog=100)
        for _ in range(2):
            loop.call_exception_handler({"message": "a bug"})

    class Full(socket.socket):
        def accept(self):
            raise OSError(errno.EMFILE, "Too many open files")

    run_apart(attacked())
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["socket.accept()", "a", "a"]
