"""Documents that the page links to, and descriptions of the endpoints for programs."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import gradio as gr
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from vit_demo.errors import InputError
from vit_demo.web.catalog.method_docs import BOARD, LESSONS, board_html, lessons_html, read_document, to_html

PAGE = Path(__file__).with_name("document.html")


def routes(blocks: gr.Blocks) -> list[Route]:
    """The routes of three documents, of the OpenAPI document, and of Gradio's description of the endpoints.

    Args:
        blocks: The page. Gradio would keep the description made for the first caller, with the address in it.
    """

    def document(path: str, title: str, html: Callable[[], str]) -> Route:
        @cache
        def page() -> str:
            return PAGE.read_text("utf-8").replace("TITLE", title).replace("NAME", path[1:]).replace("BODY", html())

        async def send(_: Request) -> Response:
            try:
                return HTMLResponse(page())
            except InputError as error:
                return PlainTextResponse(str(error), 404)

        return Route(path, send)

    async def send_info(request: Request) -> Response:
        return JSONResponse(blocks.get_api_info(all_endpoints="all_endpoints" in request.query_params))

    infos = [Route(f"/gradio_api/info{end}", send_info) for end in ("", "/")]
    api = document("/api", "API of vit_demo", lambda: to_html(read_document("api.md")))
    board = document(f"/{BOARD}", "Faithfulness of heatmaps", board_html)
    lessons = document(f"/{LESSONS}", "Lessons with vit_demo", lessons_html)
    return [Route("/openapi.json", RedirectResponse("gradio_api/openapi.json")), api, board, lessons, *infos]
