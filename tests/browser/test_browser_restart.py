"""A server that is killed and started again, as a process: the page comes back by itself, with its state."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]


class Server:
    """The app on one port, in several lives, with a home that cannot be written."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        unwritable = {"HOME": "/proc/home", "XDG_CACHE_HOME": "/proc/cache", "MPLCONFIGDIR": "/proc/matplotlib"}
        settings = {"GRADIO_SERVER_PORT": str(self.port), "OMP_NUM_THREADS": "1", "HF_HOME": "/proc/hub"}
        environment = {**os.environ, **unwritable, **settings}
        self.process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )

    def wait(self) -> None:
        deadline = time.monotonic() + 180  # importing torch takes long on a busy machine
        while time.monotonic() < deadline:
            assert self.process is not None and self.process.poll() is None
            try:
                urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=30).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("it did not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.start()
    server.wait()
    yield server
    server.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is where nobody can write")
def test_a_killed_server_comes_back_and_the_page_goes_on_by_itself(page: Page, server: Server) -> None:
    page.set_default_timeout(120_000)
    page.goto(f"http://127.0.0.1:{server.port}")
    page.wait_for_selector('.stage[data-top1="7"]')
    page.get_by_role("button", name="Example 3").click()
    page.wait_for_selector('.stage[data-top1="3"][data-state="done"]')
    server.kill()
    page.locator("#patch-size").get_by_text("7", exact=True).click()
    page.get_by_text("The connection to the server was lost. Trying again …").first.wait_for()
    address = page.url
    server.start()
    page.wait_for_function("document.querySelector('.stage').__stage.current().rows === 4")
    page.wait_for_selector('.stage[data-top1="3"][data-state="done"]')
    assert page.url == address and "digit=3" in address
