"""Starts the server: the page, its API, and ``/healthz``; and ends it in good order."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import FrameType

import gradio as gr
from gradio.routes import App
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from vit_demo.accelerator import device_name
from vit_demo.errors import InputError
from vit_demo.inference.engine import get_engine
from vit_demo.version import __version__
from vit_demo.web import uploads
from vit_demo.web.limits import QUEUE, SESSIONS, UPLOAD_BYTES
from vit_demo.web.page import build
from vit_demo.web.security import Guard
from vit_demo.web.theme import style, theme

_TAKEN = "Port {} cannot be used: stop what listens there, or choose another one."

SWITCH_SECONDS = 0.0005
"""How long a thread may hold the interpreter while another one waits for it: a digit's must not wait for a photo's."""

M_ARENA_MAX = -8
"""Of glibc's ``mallopt``: the number of heaps."""

DRAIN_SECONDS = 20.0
"""How long requests under way may take when the server is told to stop."""


def launch(host: str | None = None, port: int | None = None, *, wait: bool = True) -> gr.Blocks:
    """Builds the page and serves it.

    Args:
        host: Address to listen on; by default ``GRADIO_SERVER_NAME`` or this machine only.
        port: By default ``GRADIO_SERVER_PORT``; without either, 7860 or the next one that is free.
        wait: Until SIGINT or SIGTERM, upon which requests under way are finished; otherwise the server runs on in a
            thread until the page is closed.

    Returns:
        The page that is being served, at its ``local_url``.

    Raises:
        InputError: If the port is taken, or is no port.
    """
    port = _port(port)
    _check_free(host, port)
    uploads.folder()  # before any component asks Gradio where it is
    _bound_heaps()
    sys.setswitchinterval(SWITCH_SECONDS)
    page = build()
    page.queue(default_concurrency_limit=None, max_size=QUEUE, api_open=False)
    try:
        page.launch(
            prevent_thread_lock=True,
            server_name=host,
            server_port=port,
            theme=theme(),
            css=style(),
            ssr_mode=False,
            inbrowser=wait and sys.stdout.isatty(),
            max_file_size=UPLOAD_BYTES,
            run_history=False,
            enable_monitoring=False,
            state_session_capacity=SESSIONS,
            app_kwargs={"routes": [Route("/healthz", healthz)], "lifespan": _guarded},
        )
    except OSError as error:
        raise InputError(_TAKEN.format(port)) from error
    if wait:
        _serve_until_stopped(page)
    return page


@asynccontextmanager
async def _guarded(app: App) -> AsyncIterator[None]:
    """Puts the guard in front of all else, also of what Gradio has put in front of itself; cleans up meanwhile."""
    assert app.middleware_stack is not None
    app.middleware_stack = Guard(app.middleware_stack, app.get_blocks())
    janitor = uploads.Janitor()
    janitor.start()
    yield
    janitor.stop()


def _serve_until_stopped(page: gr.Blocks) -> None:
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    while not stopped.wait(0.5):  # a wait without an end would not hear a signal on every system
        pass
    finished = get_engine().jobs.close(DRAIN_SECONDS)
    stopped.clear()
    stopped.wait(1.0)  # for the last answers to leave; a second signal ends it at once
    page.close()
    if not finished:
        # The interpreter would stop the threads of these jobs wherever they are, and then wait for locks they hold.
        uploads.remove()
        os._exit(0)


def _bound_heaps() -> None:
    """Keeps glibc from giving each thread a heap of its own, whose free memory no other thread can use."""
    with suppress(OSError, AttributeError):  # there is no such function elsewhere
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def _port(port: int | None) -> int | None:
    given = port if port is not None else os.environ.get("GRADIO_SERVER_PORT") or None
    if given is None:
        return None
    try:
        number = int(given)
    except ValueError:
        number = -1
    if not 0 < number < 65536:
        raise InputError(f"{given!r} is not a port: choose a number from 1 to 65535.")
    return number


def _check_free(host: str | None, port: int | None) -> None:
    """Says at once what would otherwise be found out once the page is built."""
    if port is None:
        return
    address = host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    try:
        with socket.create_server((address, port)):
            return
    except OSError as error:
        raise InputError(_TAKEN.format(port)) from error


async def healthz(_: Request) -> JSONResponse:
    """Alive, and what it runs on."""
    engine = get_engine()
    return JSONResponse(
        {"status": "ok", "device": device_name(engine.device), "presets": engine.loaded, "version": __version__}
    )
