"""Limits on connections, before there is a request: their number, and how much is read at once."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import DEFAULT_MAX_INCOMPLETE_EVENT_SIZE, H11Protocol

from vit_demo.web import settings
from vit_demo.web.guard.headers import client_address

READ_BYTES = 8192
"""Bytes that are read at once. Pipelined requests among them are parsed together, which takes long."""

MAX_CONNECTIONS, MAX_CONNECTIONS_OF_ONE = 800, 200
"""Open connections in all, and of one address; a proxy has its own limits."""


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
    """uvicorn's HTTP protocol; a connection too many ends another one that has no request, or else itself."""

    address = ""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = Connection(h11.SERVER, DEFAULT_MAX_INCOMPLETE_EVENT_SIZE)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Limits what is read at once, and the number of connections."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if not settings.num_proxies():
            self.address = client_address({"client": self.client, "headers": []})
        opened = [peer for peer in self.connections if isinstance(peer, Protocol) and not peer.transport.is_closing()]
        own = [peer for peer in opened if peer.address == self.address] if self.address else []
        for peers, most in ((opened, MAX_CONNECTIONS), (own, MAX_CONNECTIONS_OF_ONE)):
            if len(peers) > most:
                idle = [peer for peer in peers if peer.cycle is None or peer.cycle.response_complete]
                # Preferably a connection that has never sent a request; this one is always among them.
                min(idle, key=lambda peer: (peer.cycle is not None, peer is self)).transport.abort()
