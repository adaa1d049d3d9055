"""A server that ends and another that is started in its place: the page comes back by itself, with its state."""

import sys

from vit_demo.web.server import launch

from ..servers import free_port, start, wait_for
from .choosing import Page

HOMES = ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "HF_HOME")
UNWRITABLE = {name: f"/proc/{name}" for name in HOMES} if sys.platform == "linux" else {}


def test_another_server_takes_over_and_the_page_goes_on_by_itself(page: Page) -> None:
    port = free_port()
    first = launch("127.0.0.1", port, wait=False)
    try:
        page.goto(f"http://127.0.0.1:{port}")
        page.wait_for_selector('.stage[data-top1="8"]')
        page.get_by_role("button", name="Example 3").click()
        page.wait_for_selector('.stage[data-top1="3"][data-state="done"]')
    finally:
        first.close()
    server = None
    try:
        page.locator("#patch-size").get_by_text("14", exact=True).click()
        page.get_by_text("The connection to the server was lost. Trying again …").first.wait_for()
        page.get_by_role("button", name="Example 5").click()
        page.wait_for_selector(".stage.waiting.on-paper")  # nothing of the 3 is shown as the 5
        address = page.url
        server = start(port, "app.py", **UNWRITABLE)  # a process of its own, which knows nothing of the first
        wait_for(port, server)
        page.wait_for_function("document.querySelector('.stage').__stage.current()?.rows === 2")
        page.wait_for_selector('.stage[data-top1="5"][data-state="done"]')
        assert page.locator(".result-status").is_hidden()
        assert page.url == address and "digit=5" in address
    finally:
        if server:
            server.kill()
            server.wait()
