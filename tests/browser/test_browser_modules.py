"""Where the page's modules are found: below a subpath, behind a proxy, in a frame, after a re-mount; or a sentence."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.responses import HTMLResponse

from vit_demo.web.frontend import modules
from vit_demo.web.frontend.components import inputs
from vit_demo.web.requests.packing import pack

from ..asynchronous import until
from ..servers import free_port, page_routes
from .choosing import FrameLocator, Page, wait_until

received: list[Any] = []  # by Python


async def remember(request: Any) -> bytes:
    received.append(request)
    return pack({"error": "There is no model here."})


def inputs_page() -> gr.Blocks:
    with gr.Blocks() as blocks:
        pad = inputs(digits_preset="digits-tiny")
        gr.Button("hide", elem_id="hide").click(lambda: gr.update(visible=False), None, pad, show_progress="hidden")
        gr.Button("show", elem_id="show").click(lambda: gr.update(visible=True), None, pad, show_progress="hidden")
    return blocks


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Any], str]]:
    """Serves an ASGI application and returns its address."""
    servers: list[uvicorn.Server] = []

    def start(app: Any) -> str:
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", port, log_level="error"))
        threading.Thread(target=server.run, daemon=True).start()
        until(lambda server=server: server.started)
        servers.append(server)
        return f"http://127.0.0.1:{port}"

    yield start
    for server in servers:
        server.should_exit = True


def mounted(path: str, **options: Any) -> FastAPI:
    """The page below a path of another application, which shows it in a frame at ``/host``."""
    app = FastAPI()
    app.add_route("/host", lambda _: HTMLResponse(f'<iframe src="{path}/" width=900 height=900></iframe>'))
    kwargs = {"routes": page_routes(remember)}
    return gr.mount_gradio_app(app, inputs_page(), path, app_kwargs=kwargs, head=modules.script_tag(), **options)


def draw(page: Page, pad: Page | FrameLocator) -> None:
    """Draws a line, and waits until Python has got it."""
    received.clear()
    paper = pad.locator("#pad .paper")
    paper.click(trial=True)  # waits for the veil of a page still loading to be lifted
    pad.locator("#pad .example").nth(9).wait_for()
    box = paper.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 20, steps=4)
    page.mouse.up()
    wait_until(page, lambda: received)
    assert received[0]["source"]["drawing"].startswith("data:image/png")


def test_below_a_subpath_and_in_a_frame(page: Page, serve: Callable[[Any], str]) -> None:
    address = serve(mounted("/demo"))
    page.goto(f"{address}/demo/")
    draw(page, page)
    page.goto(f"{address}/host")
    draw(page, page.frame_locator("iframe"))


def test_behind_a_proxy_that_strips_its_prefix(page: Page, serve: Callable[[Any], str]) -> None:
    app = mounted("", root_path="/space")

    async def proxy(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith("/space"), scope["path"]
            path = scope["path"].removeprefix("/space") or "/"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(f"{serve(proxy)}/space/")
    draw(page, page)
    loaded = [url for url in requested if url.endswith(".js") and modules.PREFIX in url]
    assert len(loaded) == len(set(loaded)), "what is preloaded is what is imported"


def test_an_application_without_the_modules_says_so_in_one_sentence(page: Page, serve: Callable[[Any], str]) -> None:
    address = serve(gr.mount_gradio_app(FastAPI(), inputs_page(), "/demo"))
    page.goto(f"{address}/demo/")
    page.get_by_text(f"could not be loaded from {address.removeprefix('http://')}: reload the page.").wait_for()


def test_inputs_that_are_mounted_again_keep_their_drawing_and_draw(page: Page, serve: Callable[[Any], str]) -> None:
    page.goto(f"{serve(mounted('/demo'))}/demo/")
    draw(page, page)
    page.locator("#hide").click()
    page.locator("#pad .paper").wait_for(state="hidden")
    page.locator("#show").click()
    page.locator("#pad .paper").wait_for()
    draw(page, page)
    ink = """() => {
        const { data } = document.querySelector("#pad .paper").getContext("2d").getImageData(0, 0, 9999, 9999);
        return data.some((value, i) => i % 4 === 3 && value > 200);
    }"""
    assert page.evaluate(ink)
