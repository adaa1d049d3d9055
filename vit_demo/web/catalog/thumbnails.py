"""Serves small copies of the example photos, each at the sizes at which the browser shows it."""

from __future__ import annotations

import io
from functools import cache

from PIL import Image, ImageOps
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vit_demo import images
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

PREVIEW_SIZE = 520, 192
"""What the preview fits into, in pixels: twice its frame on the page, for dense screens."""

BUTTON_SIZE = 88, 88
"""The button of an example, likewise."""


def routes(prefix: str) -> list[Route]:
    """Where the pictures are served, below a prefix; the application that serves the page must have these routes."""
    return [Route(f"{prefix}/examples/{{size}}/{{name}}.webp", _serve)]


@cache
def _copy(name: str, size: str) -> bytes:
    picture = images.read_image(EXAMPLE_PHOTOS[name].path)
    if size == "preview":
        picture.thumbnail(PREVIEW_SIZE, Image.Resampling.LANCZOS)
    else:
        picture = ImageOps.fit(picture, BUTTON_SIZE, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, "webp", quality=82)
    return buffer.getvalue()


def _serve(request: Request) -> Response:
    name, size = request.path_params["name"], request.path_params["size"]
    if name not in EXAMPLE_PHOTOS or size not in ("preview", "button"):
        return PlainTextResponse("There is no such example: reload the page.", 404, {"cache-control": "no-store"})
    return Response(_copy(name, size), media_type="image/webp", headers={"cache-control": "public, max-age=86400"})
