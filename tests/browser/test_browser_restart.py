"""A server that is killed and started again, as a process: the page comes back by itself, with its state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..servers import free_port, start, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOMES = ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "HF_HOME")
UNWRITABLE = {name: f"/proc/{name}" for name in HOMES} if sys.platform == "linux" else {}


def test_a_killed_server_comes_back_and_the_page_goes_on_by_itself(page: Page) -> None:
    page.set_default_timeout(120_000)
    port = free_port()
    server = start(port, "app.py", **UNWRITABLE)
    try:
        wait_for(port, server)
        page.goto(f"http://127.0.0.1:{port}")
        page.wait_for_selector('.stage[data-top1="8"]')
        page.get_by_role("button", name="Example 3").click()
        page.wait_for_selector('.stage[data-top1="3"][data-state="done"]')
        server.kill()
        server.wait()
        page.locator("#patch-size").get_by_text("14", exact=True).click()
        page.get_by_text("The connection to the server was lost. Trying again …").first.wait_for()
        page.get_by_role("button", name="Example 5").click()
        page.locator(".picture").wait_for(state="hidden")  # nothing of the 3 is shown as the 5
        address = page.url
        server = start(port, "app.py", **UNWRITABLE)
        page.wait_for_function("document.querySelector('.stage').__stage.current()?.rows === 2")
        page.wait_for_selector('.stage[data-top1="5"][data-state="done"]')
        assert page.locator(".result-status").is_hidden()
        assert page.url == address and "digit=5" in address
    finally:
        server.kill()
        server.wait()
