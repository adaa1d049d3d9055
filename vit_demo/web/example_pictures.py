"""Serves small copies of the example photos."""

from __future__ import annotations

import io
from functools import cache

from PIL import Image
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vit_demo import images
from vit_demo.web.components.modules import PREFIX
from vit_demo.web.example_photos import EXAMPLE_PHOTOS

SIDE = 400
"""Longest side of the copy that the browser shows, in pixels."""


def routes() -> list[Route]:
    """Where the pictures are served; the application that serves the page must have these routes."""
    return [Route(f"{PREFIX}/examples/{{name}}.webp", _serve)]


@cache
def _copy(name: str) -> bytes:
    picture = images.read_image(EXAMPLE_PHOTOS[name].path)
    picture.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, "webp", quality=82)
    return buffer.getvalue()


def _serve(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in EXAMPLE_PHOTOS:
        return PlainTextResponse("There is no such example: reload the page.", 404, {"cache-control": "no-store"})
    return Response(_copy(name), media_type="image/webp", headers={"cache-control": "public, max-age=86400"})
