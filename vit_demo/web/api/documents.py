"""The descriptions of the endpoints, for people and for programs, and the board to which methods link."""

from collections.abc import Callable

import gradio as gr
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from vit_demo.errors import InputError
from vit_demo.web.catalog.method_docs import BOARD, board_html, read_document, to_html

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }}
body {{ max-width: 900px; margin: 0 auto; padding: 24px 16px 64px; }}
table {{ border-collapse: collapse; }}
:target {{ background: #8883; }}
th, td {{ padding: 4px 16px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8884; }}
code, pre {{ font: 13px ui-monospace, monospace; }}
pre {{ overflow: auto; padding: 12px; border: 1px solid #8884; border-radius: 8px; }}
</style></head><body><p><a href="./">Back to the page</a></p>{body}</body></html>"""


def routes(blocks: gr.Blocks) -> list[Route]:
    """The routes of two documents as pages, of Gradio's OpenAPI document, and of Gradio's own description.

    Args:
        blocks: The page; Gradio would keep the description that it made for the first caller, with its address.
    """

    def document(path: str, title: str, html: Callable[[], str]) -> Route:
        async def send(_: Request) -> Response:
            try:
                return HTMLResponse(PAGE.format(title=title, body=html()))
            except InputError as error:
                return PlainTextResponse(str(error), 404)

        return Route(path, send)

    async def send_info(request: Request) -> Response:
        return JSONResponse(blocks.get_api_info(all_endpoints="all_endpoints" in request.query_params))

    infos = [Route(f"/gradio_api/info{end}", send_info) for end in ("", "/")]
    api = document("/api", "API of vit_demo", lambda: to_html(read_document("api.md")))
    board = document(f"/{BOARD}", "Faithfulness of heatmaps", board_html)
    return [Route("/openapi.json", RedirectResponse("gradio_api/openapi.json")), api, board, *infos]
