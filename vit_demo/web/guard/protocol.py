"""Limits on connections, before there is a request and after its response: how many, how idle, how slowly read."""

import asyncio
import re
from collections import Counter
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import DEFAULT_MAX_INCOMPLETE_EVENT_SIZE, H11Protocol

from vit_demo.resources import descriptor_limit
from vit_demo.web import settings
from vit_demo.web.guard.headers import VISITOR, client_address

READ_BYTES = 8192  # bytes that are read at once; pipelined requests among them are parsed together, which takes long

MAX_CONNECTIONS, MAX_CONNECTIONS_OF_ONE = 800, 200  # in all, and of one address; a proxy has its own limits
OTHER_DESCRIPTORS = 100  # files that the server itself holds open; each connection takes two of the others
FEW_CONNECTIONS = 8  # connections that an address keeps although there are ``MAX_CONNECTIONS`` and each has a request
IDLE_SECONDS = 30.0  # time after which a connection without a request ends, or one with an idle stream

IDLE_STREAM = re.compile(r"/(heartbeat/[^/]*|mcp/?)$")  # some clients open these; nothing that they need is sent
INVALID_SECONDS = 0.5  # time after which a connection ends that sent what is not HTTP: its visitor has no other pace
READER_SECONDS, READER_BYTES = 10.0, 100_000  # time within which so much of a response must be read, or its rest
MAX_UNREAD_BYTES = 64_000_000  # bytes of responses that wait to be read, of all visitors together


class Connection(h11.Connection):
    """h11's parser without bodies in chunks, which take long if each has one byte; the guard refuses such requests."""

    _is_chunked = False

    def next_event(self) -> Any:
        """The next event of what has arrived."""
        if self._is_chunked:
            return h11.PAUSED
        event = super().next_event()
        self._is_chunked = isinstance(event, h11.Request) and any(
            key == b"transfer-encoding" for key, _ in event.headers
        )
        return event


class Protocol(H11Protocol):
    """uvicorn's HTTP protocol, which ends connections that are too many, idle, or read too slowly."""

    address = ""
    _idle_since, _unread, _is_invalid = 0.0, 0, False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = Connection(h11.SERVER, DEFAULT_MAX_INCOMPLETE_EVENT_SIZE)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Limits what is read at once, and the number of connections."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if not settings.num_proxies():
            self.address = client_address({"client": self.client, "headers": []})
        self._idle_since = self.loop.time()
        self.loop.call_later(READER_SECONDS, self._check)
        opened = [peer for peer in self._peers() if peer.unread or not peer.transport.is_closing()]
        own = [peer for peer in opened if peer.address == self.address] if self.address else []
        allowed = max(FEW_CONNECTIONS, (descriptor_limit() - OTHER_DESCRIPTORS) // 2)
        for peers, most in ((opened, min(MAX_CONNECTIONS, allowed)), (own, MAX_CONNECTIONS_OF_ONE)):
            if len(peers) > most:
                self._least_needed(peers).transport.abort()

    def on_response_complete(self) -> None:
        """Notes when the connection became idle."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Says after ``INVALID_SECONDS`` that this is no HTTP, and reads no more."""
        self.transport.pause_reading()
        if not self._is_invalid:
            self._is_invalid = True
            self.loop.call_later(INVALID_SECONDS, self._end, msg)

    def _end(self, msg: str) -> None:
        with suppress(h11.LocalProtocolError):  # in the middle of a response, or after the visitor has left
            super().send_400_response(msg)
        self.transport.close()

    def pause_writing(self) -> None:
        """Called for a response that is not read at once: ends the largest of who holds most, if all are too much."""
        super().pause_writing()
        peers = self._peers()
        while sum(peer.unread for peer in peers) > MAX_UNREAD_BYTES:
            held = Counter[str]()
            for peer in peers:
                held[peer.visitor] += peer.unread
            max(peers, key=lambda peer: (held[peer.visitor], peer.unread)).transport.abort()

    def resume_writing(self) -> None:
        """Called when most of what was sent has been read."""
        super().resume_writing()
        self._unread = 0

    def shutdown(self) -> None:
        """Called when the server stops and no work is left: ends with what has been sent."""
        super().shutdown()
        self.transport.close()

    @property
    def visitor(self) -> str:
        """The address of the visitor, behind a proxy that of the last request; empty if unknown."""
        return (self.scope or {}).get(VISITOR, self.address)  # type: ignore[return-value]

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for a response, or only for one that is an idle stream."""
        done = self.cycle is None or self.cycle.response_complete
        return done or (self.scope["method"] == "GET" and IDLE_STREAM.search(self.scope["path"]) is not None)

    @property
    def unread(self) -> int:
        """Bytes of responses that are still to be read."""
        return self.transport.get_write_buffer_size()

    def _peers(self) -> list["Protocol"]:
        return [peer for peer in self.connections if isinstance(peer, Protocol)]

    def _least_needed(self, peers: list["Protocol"]) -> "Protocol":
        """An idle one of who holds most; else a busy one of who holds many, and more than this one; else this one."""
        held = Counter(peer.visitor for peer in peers)
        held[""] = 0  # perhaps a proxy

        def need(peer: Protocol) -> tuple[int, int, bool]:
            has_many = held[peer.visitor] > max(FEW_CONNECTIONS, held[self.visitor])
            rank = 2 if peer is self else 0 if peer.is_idle else 1 if has_many else 3
            return rank, -held[peer.visitor], peer.cycle is not None

        return min(peers, key=need)

    def _check(self) -> None:
        """Ends this connection if it is read too slowly, or idle; otherwise checks again."""
        if self not in self.connections:
            return
        if self._unread and self.unread > max(0, self._unread - READER_BYTES):
            self.transport.abort()
        elif self.is_idle and self.loop.time() - self._idle_since >= IDLE_SECONDS:
            self.transport.close()
        self._unread = self.unread
        self.loop.call_later(READER_SECONDS, self._check)
