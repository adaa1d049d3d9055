"""Starts the server with the page, the API and ``/healthz``, and stops it gracefully."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import FrameType

import gradio as gr
from fastapi import FastAPI
from gradio.routes import App
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from vit_demo.errors import InputError
from vit_demo.inference.shared import get_engine
from vit_demo.version import __version__
from vit_demo.web import example_pictures, gradio_state, head, mailboxes, mcp, openapi, uploads
from vit_demo.web.asset_cache import AssetCache
from vit_demo.web.components import modules
from vit_demo.web.compression import CompressedPage
from vit_demo.web.limits import MAX_QUEUE_LENGTH, MAX_UPLOAD_BYTES
from vit_demo.web.page import build_page
from vit_demo.web.security import Guard
from vit_demo.web.theme import style, theme

_PORT_IN_USE = "Port {} cannot be used: stop the program that listens there, or choose another port."
_NO_FREE_PORT = "No port is free: stop other programs that serve pages, or choose a port."
_NO_SUCH_HOST = "The address {} cannot be used: choose one of this machine, such as 127.0.0.1 or 0.0.0.0."

SWITCH_INTERVAL_SECONDS = 0.0005
"""Python's thread switch interval, shortened so that a digit's thread does not wait for a photo's."""

M_ARENA_MAX = -8
"""Parameter of glibc's ``mallopt``: the number of heaps."""

SHUTDOWN_SECONDS = 20.0
"""Time that requests in progress have to finish when the server stops."""


def launch(host: str | None = None, port: int | None = None, *, wait: bool = True) -> gr.Blocks:
    """Builds the page and serves it.

    Args:
        host: Address to listen on; None for ``GRADIO_SERVER_NAME``, or 127.0.0.1 if that is not set.
        port: None for ``GRADIO_SERVER_PORT``, or 7860 or the next free port if that is not set.
        wait: Whether to serve until SIGINT or SIGTERM and then finish the requests in progress. Otherwise the server
            runs in a thread until the page is closed.

    Returns:
        The page, served at its ``local_url``.

    Raises:
        InputError: If the port is in use or not a valid one, or the address is none of this machine.
    """
    port = _port(port)
    _check_free(host, port)
    # uvicorn would believe the X-Forwarded-For of any local proxy; the guard reads it only where one is announced.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")
    page, routes = _prepare()
    try:
        page.launch(
            prevent_thread_lock=True,
            server_name=host,
            server_port=port,
            theme=theme(),
            css=style(),
            ssr_mode=False,  # Node would answer for the page, without the guard's headers
            mcp_server=mcp.install(),
            inbrowser=wait and sys.stdout.isatty(),
            max_file_size=MAX_UPLOAD_BYTES,
            run_history=False,
            enable_monitoring=False,
            footer_links=[],
            app_kwargs={"routes": routes, "lifespan": _guarded},
        )
    except OSError as error:
        raise InputError(_PORT_IN_USE.format(port) if port else _NO_FREE_PORT) from error
    if wait:
        _serve_until_stopped(page)
    return page


def asgi_app() -> FastAPI:
    """The page as an ASGI application, for servers of other programs; it has what ``launch`` serves.

    It has one process' uploads and queue, so it must not be copied into several workers.
    """
    page, routes = _prepare()
    app = FastAPI(routes=routes, lifespan=lambda _: _cleaned(page), openapi_url=None)
    app.add_middleware(AssetCache)
    app.add_middleware(CompressedPage)
    app.add_middleware(Guard, page=page)
    return gr.mount_gradio_app(
        app,
        page,
        "/",
        theme=theme(),
        css=style(),
        ssr_mode=False,
        mcp_server=mcp.install(),
        max_file_size=MAX_UPLOAD_BYTES,
        run_history=False,
        enable_monitoring=False,
        footer_links=[],
    )


def _prepare() -> tuple[gr.Blocks, list[BaseRoute]]:
    """Sets what concerns the whole process, and builds the page and the routes beside it."""
    uploads.folder()  # before any component reads Gradio's setting
    _limit_heaps()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    page = build_page()
    head.install()
    gradio_state.install(page)
    page.queue(default_concurrency_limit=None, max_size=MAX_QUEUE_LENGTH, api_open=False)
    mailboxes.install(page)
    others = [*modules.routes(), *head.routes(), *example_pictures.routes(), *openapi.routes()]
    return page, [Route("/healthz", healthz), *others]


@asynccontextmanager
async def _cleaned(page: gr.Blocks) -> AsyncIterator[None]:
    """Deletes old uploads, and what Gradio remembers of finished requests, while the server runs."""
    cleaner = uploads.UploadCleaner()
    cleaner.start()

    async def forget() -> None:
        while True:
            await asyncio.sleep(60.0)
            forget_finished(page)

    forgetting = asyncio.create_task(forget())
    try:
        yield
    finally:
        forgetting.cancel()
        cleaner.stop()
        uploads.clear()


def forget_finished(page: gr.Blocks) -> None:
    """Empties two collections of Gradio that otherwise grow with every upload and every session of an API client.

    Call it in the event loop of the server.
    """
    page.upload_file_set.clear()  # only read where ``delete_cache`` is set
    mailboxes.of(page).forget()


@asynccontextmanager
async def _guarded(app: App) -> AsyncIterator[None]:
    """Puts guard, compression and cache in front of Gradio, and cleans up while the server runs."""
    assert app.middleware_stack is not None
    app.middleware_stack = Guard(CompressedPage(AssetCache(app.middleware_stack)), app.get_blocks())
    async with _cleaned(app.get_blocks()):
        yield


def _serve_until_stopped(page: gr.Blocks) -> None:
    # What is there by now stays as long as the server. Each full garbage collection would look through it, which takes
    # a quarter of a second, and every visitor would wait.
    gc.freeze()
    gc.enable()
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    while not stopped.wait(0.5):  # on some systems a wait without a timeout is not interrupted by signals
        pass
    finished = get_engine().jobs.close(SHUTDOWN_SECONDS)
    stopped.clear()
    stopped.wait(1.0)  # time to send the last responses; a second signal ends it at once
    page.close()
    if not finished:
        # The interpreter would stop the threads of these jobs, and could then wait forever for locks they hold.
        uploads.remove()
        os._exit(0)


def _limit_heaps() -> None:
    """Limits the number of glibc's heaps: memory freed in the heap of one thread cannot be used by the others."""
    with suppress(OSError, AttributeError):  # other C libraries have no such function
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
        raise InputError(f"{given!r} is not a valid port: choose a number from 1 to 65535.")
    return number


def _check_free(host: str | None, port: int | None) -> None:
    """Checks address and port before the page is built, which takes seconds."""
    address = host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    address = address.strip("[]")
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        with socket.create_server((address, port or 0), family=family):
            return
    except (OSError, UnicodeError, TypeError) as error:  # the last two of names that are none
        is_taken = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
        sentence = _PORT_IN_USE.format(port) if is_taken else _NO_SUCH_HOST.format(address)
        raise InputError(sentence) from error


async def healthz(_: Request) -> JSONResponse:
    """Status, device, loaded presets and version of the server."""
    engine = get_engine()
    return JSONResponse(
        {"status": "ok", "device": engine.device_name, "presets": engine.loaded, "version": __version__}
    )
