"""Starts the server: the page, its API, and ``/healthz``."""

from __future__ import annotations

import sys

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from vit_demo.accelerator import device_name
from vit_demo.images import MAX_BYTES
from vit_demo.inference.engine import explorer_on
from vit_demo.version import __version__
from vit_demo.web.page import build
from vit_demo.web.theme import style, theme


def launch(host: str | None = None, port: int | None = None, *, wait: bool = True) -> gr.Blocks:
    """Builds the page and serves it.

    Args:
        host: Address to listen on; by default ``GRADIO_SERVER_NAME`` or this machine only.
        port: By default ``GRADIO_SERVER_PORT`` or 7860.
        wait: Until interrupted; otherwise the server runs on in a thread until the page is closed.

    Returns:
        The page that is being served, at its ``local_url``.
    """
    page = build()
    page.queue(default_concurrency_limit=2, max_size=64)
    page.launch(
        prevent_thread_lock=not wait,
        server_name=host,
        server_port=port,
        theme=theme(),
        css=style(),
        ssr_mode=False,
        inbrowser=wait and sys.stdout.isatty(),
        max_file_size=MAX_BYTES,
        run_history=False,
        app_kwargs={"routes": [Route("/healthz", healthz)]},
    )
    return page


async def healthz(_: Request) -> JSONResponse:
    """Alive, and what it runs on."""
    explorer = explorer_on()
    return JSONResponse(
        {"status": "ok", "device": device_name(explorer.device), "presets": explorer.loaded, "version": __version__}
    )
