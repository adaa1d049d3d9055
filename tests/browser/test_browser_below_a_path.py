"""The page below a path, opened without its last slash, however that is arranged."""

import pytest

from ..below_a_path import WAYS, served
from .choosing import READY, Page, draw

CHANGED = """run => {
    const { ready, run: now } = document.querySelector(".stage").dataset;
    return ready === "true" && now !== run;
}"""


@pytest.mark.parametrize("way", ["a variable without a slash, taken off", "an option, kept", "mounted"])
def test_it_opens_and_answers_and_asks_nothing_elsewhere(page: Page, way: str) -> None:
    with served(WAYS[way]) as address:
        page.goto(f"{address}?language=de#section=look")
        page.wait_for_url(f"{address}/?language=de#*")
        page.wait_for_selector(READY)
        requested, errors = [], []
        page.on("request", lambda one: requested.append(one.url))
        page.on("response", lambda reply: errors.append(f"{reply.status} {reply.url}") if reply.status >= 400 else None)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.reload()
        page.wait_for_selector(READY)
        run = page.locator(".stage").get_attribute("data-run")
        draw(page, 3)
        page.wait_for_function(CHANGED, arg=run)
        assert not errors
        assert all(url.startswith((f"{address}/", "data:", "blob:")) for url in requested)
        assert any(url.startswith(f"{address}/gradio_api/vit_demo/request") for url in requested)
