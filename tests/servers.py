"""Programs of ours as processes of their own, each on a free port of this machine."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from .asynchronous import PATIENCE, until

if TYPE_CHECKING:
    from starlette.routing import Route

ROOT = Path(__file__).parent.parent


UNASSIGNED = range(20_000, 30_000)
"""Below the ports that the system gives to clients: one of those could be taken again before the server listens."""


_held: list[socket.socket] = []


def free_port(*wanted: int) -> int:
    """The first port that nobody has, or any other.

    It stays bound here, where only who asks for a shared address may listen: no other program of tests is given it
    before the server starts.
    """
    for port in (*wanted, *random.SystemRandom().sample(UNASSIGNED, 100)):
        held = socket.socket()
        try:
            held.bind(("0.0.0.0", port))
        except OSError:
            held.close()
            continue
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _held.append(held)
        return port
    raise OSError("no port is free")


def start(port: int, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Runs Python with these arguments, which serve the page on a port."""
    environment = {
        **os.environ,
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        **settings,
    }
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, **output)


def wait_for(port: int, process: subprocess.Popen[str], log: Path | None = None) -> None:
    """Waits until the page is served; what the process has printed is the message if it ends instead."""

    def is_served() -> bool:
        try:
            urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE).close()
        except OSError:
            assert process.poll() is None, log.read_text() if log else process.stdout.read()
            return False
        return True

    until(is_served)


def page_routes(handle: Callable[[Any], Awaitable[bytes]]) -> list[Route]:
    """The routes of the page's scripts, and that of its requests with another function behind it."""
    from starlette.responses import Response
    from starlette.routing import Route

    from vit_demo.web.frontend import modules
    from vit_demo.web.requests.packing import HEADERS

    async def answer(request: Any) -> Response:
        return Response(await handle(await request.json()), media_type="application/json", headers=HEADERS)

    return [Route(f"{modules.PREFIX}/request", answer, methods=["POST"]), *modules.routes()]
