"""Starts the server with the page, the API, ``/healthz`` and ``/readyz``, and stops it gracefully."""

import asyncio
import ctypes
import errno
import faulthandler
import gc
import itertools
import os
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import NoReturn

# Before numpy is imported: its products of small matrices take thirty times as long when threads that other work keeps
# from running wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gradio as gr
import uvicorn
from fastapi import FastAPI
from gradio.http_server import Server
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vit_demo.accelerator import ZERO_GPU
from vit_demo.defaults import MAX_PICTURE_BYTES, PORT
from vit_demo.errors import BusyError, InputError
from vit_demo.resources import descriptor_limit, raise_descriptor_limit, trim_memory
from vit_demo.service.engine import get_engine
from vit_demo.service.jobs import SHUTTING_DOWN
from vit_demo.version import __version__
from vit_demo.web import settings
from vit_demo.web.api import documents, mcp
from vit_demo.web.catalog import example_photos
from vit_demo.web.frontend import html_head, modules, previews
from vit_demo.web.frontend.assets import read_styles
from vit_demo.web.guard import log, replacements, uploads
from vit_demo.web.guard.compression import Compression
from vit_demo.web.guard.event_checks import forget_ended
from vit_demo.web.guard.metrics import Measured, metrics
from vit_demo.web.guard.protocol import Protocol
from vit_demo.web.guard.security import guard
from vit_demo.web.page import build_page
from vit_demo.web.requests.routes import routes

MAX_QUEUE_LENGTH = 64  # events waiting in Gradio's queue

_PORT_IN_USE = "Port {} cannot be used: stop the program that listens there, or choose another port."
_NO_FREE_PORT = "No port is free: stop other programs that serve pages, or choose a port."
_NO_SUCH_HOST = "The address {} cannot be used: choose one of this machine, such as 127.0.0.1 or 0.0.0.0."

SWITCH_INTERVAL_SECONDS = 0.0005  # of Python's threads; short, so that a digit's does not wait for a photo's
M_ARENA_MAX = -8  # ``mallopt``: the number of heaps; memory freed in one cannot be used in another
M_MMAP_THRESHOLD, MMAP_BYTES = -3, 4 << 20  # ``mallopt``: freed blocks of so many bytes go back at once
QUEUE_SECONDS = 0.05  # sleep of Gradio's empty queue; its own millisecond takes a tenth of a core all the time
NUM_PORTS = 100  # ports that are tried by default, from ``PORT`` on: Gradio's

ACCEPTING_SECONDS, SHUTDOWN_SECONDS, END_SECONDS, KILL_SECONDS = 3.0, 6.0, 7.0, 8.0
"""When the server stops: until when it accepts requests, since a proxy may send some; until when work may go on; when
the process ends in any case; and when if no thread of Python has had time for that: it says where they are. The system
then takes some time to free the memory, on a busy machine seconds, and Docker waits for ten in all."""

HEALTH_SECONDS = 3.0  # time in which a worker must answer

UPLOADS_SECONDS, CLEANING_SECONDS = 5.0, 60.0  # time between searches for uploads, and for what else can go


def launch(host: str | None = None, port: int | None = None, *, wait: bool = True) -> gr.Blocks:
    """Builds the page and serves it.

    Args:
        host: Address to listen on; None for that of ``settings.server_name``.
        port: None for that of ``settings.server_port``.
        wait: Whether to serve until SIGINT or SIGTERM, finish the requests in progress and end the process; otherwise
            the server runs in a thread until the page is closed.

    Returns:
        The page, served at its ``local_url``.

    Raises:
        InputError: If the port is invalid or in use, or the address does not belong to this machine.
    """
    listening = _listen(host, port)  # before the page is built, which takes seconds
    app = asgi_app()
    if ZERO_GPU:
        # The package `spaces` reports the Space as started from within Gradio's own `launch`, and only there.
        with gr.Blocks() as empty:
            pass
        empty.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, ssr_mode=False)
        empty.close()
    page = app.state.page
    # The guard reads X-Forwarded-For if a proxy is announced; uvicorn would believe any local process.
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Protocol,
        ws="none",
        backlog=min(2048, descriptor_limit() // 4),  # so many are accepted before ``Protocol`` can refuse any
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = Server(config)
    server.run = partial(server.run, [listening])  # type: ignore[method-assign]
    stopped = _on_signals() if wait else None
    server.run_in_thread()
    # What Gradio's own `launch` sets, so that `page.close()` stops the server.
    page.server, page.app = server, next(route.app for route in app.routes if isinstance(route, Mount))
    shown, number, *_ = listening.getsockname()
    shown = "localhost" if shown in ("0.0.0.0", "::") else f"[{shown}]" if ":" in shown else shown
    page.local_url, page.server_port = f"http://{shown}:{number}/", number
    print(f"* Running on local URL:  {page.local_url}", flush=True)
    if stopped:
        if sys.stdout.isatty():
            webbrowser.open(page.local_url)
        _serve_until(stopped)
    return page


def asgi_app() -> FastAPI:
    """The page as an ASGI application, as ``launch`` serves it, for other servers, in one worker alone."""
    uploads.folder()  # before any component reads Gradio's setting
    log.install()
    # For each event Gradio recomputes statistics of the last 10,000, which only the closed /monitoring shows.
    os.environ |= {"GRADIO_ANALYTICS_MAX_EVENTS": "1", "GRADIO_ANALYTICS_CACHE_FREQUENCY": str(sys.maxsize)}
    with suppress(OSError, AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)
    raise_descriptor_limit()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    page = build_page()
    html_head.install()
    replacements.install(page)
    page.queue(default_concurrency_limit=None, max_size=MAX_QUEUE_LENGTH, api_open=False)
    own: list[BaseRoute] = [
        *routes(modules.PREFIX),
        *modules.routes(),
        *example_photos.routes(modules.PREFIX),
        *html_head.routes(),
        *previews.routes(),
    ]
    own += [*documents.routes(page), Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
    middleware = [Middleware(Started), Middleware(Measured), *guard(page), Middleware(Compression)]
    app = FastAPI(routes=own, lifespan=lambda _: _cleaned(page), openapi_url=None, middleware=middleware)
    app.state.page = page
    page._queue.sleep_when_free = page._queue.progress_update_sleep_when_free = QUEUE_SECONDS
    gr.mount_gradio_app(
        app,
        page,
        "/",
        theme=html_head.theme(),
        css=read_styles("page.css"),
        ssr_mode=False,
        mcp_server=mcp.install(),
        root_path=settings.root_path() if "://" in settings.root_path() else "",  # a path is that of each request
        max_file_size=MAX_PICTURE_BYTES,
        run_history=False,
        enable_monitoring=False,
        footer_links=[],
    )
    return app


class Started:
    """ASGI middleware that starts the application with its first request, as nobody does who mounts it in another."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._lock = app, asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request once the application runs."""
        async with self._lock if scope["type"] == "http" else nullcontext():
            if scope["type"] == "http" and not scope["app"].state.page.is_running:
                ready = asyncio.Event()
                self._running = asyncio.create_task(_run(scope["app"], ready))
                await ready.wait()
        await self._app(scope, receive, send)


async def _run(app: FastAPI, ready: asyncio.Event) -> None:
    async with app.router.lifespan_context(app):
        ready.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def _cleaned(page: gr.Blocks) -> AsyncIterator[None]:
    """While the server runs, deletes old uploads and results of the API that nobody collected."""
    cleaner = uploads.UploadCleaner()

    async def clean() -> None:
        for number in itertools.count(1):
            await asyncio.sleep(UPLOADS_SECONDS)
            with suppress(OSError):  # for instance of a file that has been deleted meanwhile
                await asyncio.to_thread(cleaner.clean, time.time())
            if number % (CLEANING_SECONDS // UPLOADS_SECONDS) == 0:
                forget_ended(page)
                await asyncio.to_thread(trim_memory)  # or else thousands of varied requests leave more and more of it

    asyncio.get_running_loop().set_exception_handler(log.handle_error)
    cleaning = asyncio.create_task(clean())
    try:
        yield
    finally:
        cleaning.cancel()
        uploads.clear()


def _on_signals() -> threading.Event:
    """An event that SIGINT and SIGTERM set from now on: whoever sees the server answer may stop it."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


def _serve_until(stopped: threading.Event) -> NoReturn:
    # These objects live as long as the server. Otherwise each full garbage collection would traverse them, and every
    # visitor would wait for a quarter of a second.
    gc.freeze()
    gc.enable()
    while not stopped.wait(0.5):  # on some systems signals do not interrupt a wait without a timeout
        pass
    faulthandler.dump_traceback_later(KILL_SECONDS, exit=True)  # in a thread without the interpreter's lock
    latest = threading.Timer(END_SECONDS, _end)
    latest.daemon = True
    latest.start()
    get_engine().jobs.close(SHUTDOWN_SECONDS, ACCEPTING_SECONDS)
    stopped.clear()
    stopped.wait(0.3)  # time to send the last responses; a second signal ends it at once
    _end()


def _end() -> NoReturn:
    """Ends the process; Python itself would first look at a million objects, and perhaps wait for locks of jobs."""
    uploads.remove()
    os._exit(0)


def _listen(host: str | None, port: int | None) -> socket.socket:
    """Opens a socket, by default at the first free one of Gradio's ports; raises the errors of ``launch``."""
    address = host.strip("[]") if host else settings.server_name()
    wanted = settings.server_port() if port is None else port
    if wanted is not None and not settings.is_port(str(wanted)):
        raise InputError(f"{wanted!r} is not a valid port: choose a number from 1 to 65535.")
    for number in [wanted] if wanted else range(PORT, PORT + NUM_PORTS):
        try:
            family = socket.getaddrinfo(address, number, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((address, number), family=family, backlog=2048)
            # Connections inherit it. Without it the second part of a reply waits up to 40 ms until the browser
            # acknowledges the first; asyncio sets it only for sockets that name their protocol.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listening
        except (OSError, UnicodeError, TypeError) as error:  # invalid names raise the last two
            if not isinstance(error, OSError) or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise InputError(_NO_SUCH_HOST.format(address)) from error
            taken = error
    raise InputError(_PORT_IN_USE.format(wanted) if wanted else _NO_FREE_PORT) from taken


async def healthz(_: Request) -> JSONResponse:
    """Status, device, loaded presets and version of the server; 503 if a worker is stuck or none answers in time."""
    engine = get_engine()
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await engine.jobs.run_async("health", lambda: None, "health")
        if engine.jobs.is_stuck:
            raise TimeoutError
    except (TimeoutError, BusyError) as error:
        return JSONResponse({"status": str(error) or "The workers do not answer: restart the server."}, 503)
    return JSONResponse(
        {"status": "ok", "device": engine.device_name, "presets": engine.loaded, "version": __version__}
    )


async def readyz(_: Request) -> JSONResponse:
    """Whether requests may be sent here; 503 as soon as the server is to stop."""
    closing = get_engine().jobs.is_closing
    return JSONResponse({"status": SHUTTING_DOWN if closing else "ok"}, 503 if closing else 200)
