"""A server that goes away and comes back: a sentence meanwhile, then the page goes on where it was."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import gradio as gr
import pytest
import uvicorn
from fastapi import FastAPI

from vit_demo.inference.engine import get_engine
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS, routes
from vit_demo.web.frontend import modules
from vit_demo.web.frontend.components import Inputs, Stage
from vit_demo.web.guard import uploads
from vit_demo.web.page import initial_stage
from vit_demo.web.requests.parse import example_source
from vit_demo.web.requests.poll import handle
from vit_demo.weights import PRESETS

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Server:
    """The inputs and the stage on one port, in one or several lives."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        uploads.folder()
        self.example = initial_stage(PRESETS["digits-tiny"], example_source("digit-7"))
        with gr.Blocks() as blocks:
            Inputs(on_request=handle, digits_preset="digits-tiny")
            Stage(self.example, on_request=handle, elem_id="stage")
        app_kwargs = {"routes": [*modules.routes(), *routes(modules.PREFIX)]}
        # One application for all lives, because a second one in the same process would number its components on.
        self.app = gr.mount_gradio_app(FastAPI(), blocks, "/demo", app_kwargs=app_kwargs)
        self.running: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/demo/"

    def start(self) -> None:
        self.running = uvicorn.Server(uvicorn.Config(self.app, "127.0.0.1", self.port, log_level="error"))
        self.thread = threading.Thread(target=self.running.run, daemon=True)
        self.thread.start()
        while not self.running.started:
            time.sleep(0.05)

    def stop(self) -> None:
        self.running.should_exit = self.running.force_exit = True
        self.thread.join(20)


@pytest.fixture
def server():
    server = Server()
    server.start()
    yield server
    server.stop()


def test_a_lost_connection_is_told_and_mends_itself(page: Page, server: Server):
    page.goto(server.url)
    page.wait_for_selector('.stage[data-top1="7"]')
    page.get_by_label("Model", exact=True).wait_for()
    server.stop()
    page.get_by_role("button", name="Example 3").click()
    page.get_by_text("The connection to the server was lost. Trying again …").first.wait_for()
    assert page.locator(".picture").is_hidden(), "nothing of the 7 is shown as the 3"
    server.start()
    page.wait_for_selector('.stage[data-top1="3"][data-state="done"]')
    assert page.locator(".result-status").is_hidden()


def test_an_upload_that_is_lost_says_so(page: Page, server: Server):
    page.goto(server.url)
    page.wait_for_selector('.stage[data-top1="7"]')
    page.get_by_role("tab", name="Photo").click()
    page.locator("#photo input[type=file]").first.set_input_files(EXAMPLE_PHOTOS["lion"].path)
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.source.upload")
    for path in uploads.folder().glob("*/lion.jpg"):
        path.unlink()
    get_engine()._results._entries.clear()
    page.locator("#patch-size").get_by_text("20", exact=True).click()
    page.locator(".result-status", has_text="not on the server: choose it again").wait_for()
    page.get_by_role("button", name="Goldfish").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.source.example === 'goldfish'")
