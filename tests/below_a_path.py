"""The ways in which the page lives below ``/demo``: who says so, and whether a proxy takes the path off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from vit_demo.web.server import asgi_app

from .asynchronous import PATIENCE, until
from .servers import free_port


@dataclass
class Way:
    """How a server is run.

    Attributes:
        variable: ``GRADIO_ROOT_PATH``.
        option: ``--root-path`` of uvicorn.
        is_mounted: Whether the page is mounted in another application, which knows nothing more about it.
        is_taken_off: Whether a proxy takes the path off.
    """

    variable: str = ""
    option: str = ""
    is_mounted: bool = False
    is_taken_off: bool = False


WAYS = {
    "an option, kept": Way(option="/demo"),
    "an option with a slash, taken off": Way(option="/demo/", is_taken_off=True),
    "a variable, kept": Way(variable="/demo"),
    "a variable without a slash, taken off": Way(variable="demo", is_taken_off=True),
    "a variable with two slashes, taken off": Way(variable="/demo/", is_taken_off=True),
    "mounted": Way(is_mounted=True),
}


@contextmanager
def served(way: Way) -> Iterator[str]:
    """Serves the page; its address, below which a browser finds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_ROOT_PATH", way.variable)
        app: ASGIApp = asgi_app()
        if way.is_mounted:
            outer = FastAPI()
            outer.mount("/demo", app)
            app = outer
        application = _taking_off(app, way.option) if way.is_taken_off else app
        port = free_port()
        config = uvicorn.Config(application, "127.0.0.1", port, log_level="error", root_path=way.option)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        until(lambda: server.started)
        yield f"http://127.0.0.1:{port}/demo"
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE)


def _taking_off(app: ASGIApp, option: str) -> ASGIApp:
    """As if a proxy had taken ``/demo`` off before the server, which then puts its own option there."""

    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            path = option + (scope["path"].removeprefix(option).removeprefix("/demo") or "/")
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    return proxy
