"""The descriptions of the endpoints: for people, and for programs."""

import gradio as gr
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from vit_demo.errors import InputError
from vit_demo.web.catalog.method_docs import read_document, to_html

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API of vit_demo</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }}
body {{ max-width: 900px; margin: 0 auto; padding: 24px 16px 64px; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 4px 16px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8884; }}
code, pre {{ font: 13px ui-monospace, monospace; }}
pre {{ overflow: auto; padding: 12px; border: 1px solid #8884; border-radius: 8px; }}
</style></head><body><p><a href="./">Back to the page</a></p>{}</body></html>"""


def routes(blocks: gr.Blocks) -> list[Route]:
    """The routes of ``docs/api.md`` as a page, of Gradio's OpenAPI document, and of Gradio's own description.

    Args:
        blocks: The page; Gradio would keep the description that it made for the first caller, with its address.
    """

    async def send_page(_: Request) -> Response:
        try:
            return HTMLResponse(PAGE.format(to_html(read_document("api.md"))))
        except InputError as error:
            return PlainTextResponse(str(error), 404)

    async def send_info(request: Request) -> Response:
        return JSONResponse(blocks.get_api_info(all_endpoints="all_endpoints" in request.query_params))

    infos = [Route(f"/gradio_api/info{end}", send_info) for end in ("", "/")]
    return [Route("/openapi.json", RedirectResponse("gradio_api/openapi.json")), Route("/api", send_page), *infos]
