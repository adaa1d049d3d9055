"""Documents that the page links to, and descriptions of the endpoints for programs."""

import re
from base64 import b64encode
from collections.abc import Callable, Collection
from functools import cache
from hashlib import sha256
from pathlib import Path

import gradio as gr
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from vit_demo.errors import InputError
from vit_demo.web.catalog.method_docs import (
    BOARD,
    LANGUAGES,
    LESSONS,
    board_html,
    lesson,
    lessons_html,
    read_document,
    to_html,
)

PAGE = Path(__file__).with_name("document.html")


def routes(blocks: gr.Blocks) -> list[Route]:
    """The routes of documents, of one lesson, of the OpenAPI document, and of Gradio's description of the endpoints.

    Gradio would keep the description made for the first caller, with the address in it.
    """

    def document(path: str, html: Callable[[str], str], languages: Collection[str] = ("en",)) -> Route:
        @cache
        def page(language: str) -> str:
            text, body = PAGE.read_text("utf-8"), html(language)
            script = "".join(re.findall("<script>(.*)</script>", text, re.DOTALL))
            digest = b64encode(sha256(script.encode()).digest()).decode()
            title = "".join(re.findall("<h1>(.*)</h1>", body))
            words = {"LANGUAGE": language, "DIGEST": digest, "TITLE": title, "NAME": path[1:], "BODY": body}
            return re.sub("|".join(words), lambda match: words[match[0]], text)

        async def send(request: Request) -> Response:
            try:
                return HTMLResponse(page(_language(request, languages)))
            except InputError as error:
                return PlainTextResponse(str(error), 404)

        return Route(path, send)

    async def send_lesson(request: Request) -> Response:
        try:
            return JSONResponse(lesson(request.path_params["number"], _language(request, LANGUAGES)))
        except InputError as error:
            return PlainTextResponse(str(error), 404)

    async def send_info(request: Request) -> Response:
        return JSONResponse(blocks.get_api_info(all_endpoints="all_endpoints" in request.query_params))

    infos = [Route(f"/gradio_api/info{end}", send_info) for end in ("", "/")]
    api = document("/api", lambda _: to_html(read_document("api.md")))
    board = document(f"/{BOARD}", lambda _: board_html())
    lessons = document(f"/{LESSONS}", lessons_html, LANGUAGES)
    one = Route(f"/{LESSONS}/{{number:int}}", send_lesson)
    return [Route("/openapi.json", RedirectResponse("gradio_api/openapi.json")), api, board, lessons, one, *infos]


def _language(request: Request, languages: Collection[str]) -> str:
    """The language that a request asks for, where there is a document in it."""
    language = request.query_params.get("language", "en")
    return language if language in languages else "en"
