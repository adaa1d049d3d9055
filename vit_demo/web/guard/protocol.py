"""What of a connection is bounded before there is a request: how much is read at once, and how many there are."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from vit_demo.web import settings
from vit_demo.web.guard.headers import client_address

READ_BYTES = 8192
"""Bytes that are read at once. They are parsed together, which takes long if they are chunks of one byte each."""

MAX_CONNECTIONS, MAX_CONNECTIONS_OF_ONE = 800, 200
"""Open connections of all, and of one address; a proxy has its own limits."""


class Protocol(H11Protocol):
    """uvicorn's protocol of a connection. One too many ends another without a request, or itself if there is none."""

    address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Limits what is read at once, and the number of connections."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if not settings.num_proxies():
            self.address = client_address({"client": self.client, "headers": []})
        everyone = [one for one in self.connections if isinstance(one, Protocol) and not one.transport.is_closing()]
        own = [one for one in everyone if one.address == self.address] if self.address else []
        for found, most in ((everyone, MAX_CONNECTIONS), (own, MAX_CONNECTIONS_OF_ONE)):
            if len(found) > most:
                idle = [one for one in found if one.cycle is None or one.cycle.response_complete]
                # First one that has never sent a request; this one is always among them.
                min(idle, key=lambda one: (one.cycle is not None, one is self)).transport.abort()
