"""Links to examples and short drawings, of which a preview shows the picture: each has an address that opens the page.

A link's fragment reaches no server, so the picture is in the path: an example's name, or a drawing's strokes, which are
drawn here. Nothing is looked up or kept, and no photo of a visitor has a preview.
"""

import io
import re
from base64 import b64encode, urlsafe_b64decode
from hashlib import sha256
from html import escape

from gradio.route_utils import get_root_url
from PIL import Image, ImageDraw, ImageOps
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from vit_demo import images
from vit_demo.web.catalog.example_digits import Point, drawn, example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.frontend import modules
from vit_demo.web.frontend.constants import COLOURS, MAX_PREVIEW_CHARACTERS
from vit_demo.web.frontend.html_head import DESCRIPTION, TITLE

NAMES = (*(f"digit-{digit}" for digit in range(10)), *EXAMPLE_PHOTOS)
"""The examples, by their names in a request of the page."""

SIZE = (1200, 630)
"""Width and height of a picture, as of ``preview.jpg``."""

PATH = f"{modules.PREFIX}/see"

_STROKES = re.compile(rf"strokes-([A-Za-z0-9_-]{{7,{MAX_PREVIEW_CHARACTERS}}})")
_PENS = ((0.055, 0), (1 / 12, 0), (0.115, 0), (0.14, 255))
"""Width and grey of the pens of ``pad/strokes.js``, the eraser last."""

_SQUARES = 4  # along a side of the grid over a digit
_OPEN = 'location.replace("../../../" + location.search + location.hash)'
_DIGEST = b64encode(sha256(_OPEN.encode()).digest()).decode()
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{digest}'">
<meta name="robots" content="noindex">
<meta property="og:type" content="website"><meta property="og:site_name" content="vit_demo">
<meta property="og:title" content="{title}"><meta property="og:description" content="{description}">
<meta property="og:image" content="{image}">
<meta property="og:image:width" content="{size[0]}"><meta property="og:image:height" content="{size[1]}">
<meta name="twitter:card" content="summary_large_image">
<script>{script}</script></head><body><a href="../../../">vit_demo</a></body></html>
"""


def routes() -> list[Route]:
    """The routes of the pictures, and of the addresses that open the page."""
    return [Route(f"{PATH}/{{name}}.jpg", _send_picture), Route(f"{PATH}/{{name}}", _send_page)]


def _send_picture(request: Request) -> Response:
    name = request.path_params["name"]
    if not _is_known(name):
        return _unknown()
    return Response(picture(name), media_type="image/jpeg", headers={"cache-control": "public, max-age=86400"})


def _send_page(request: Request) -> Response:
    name = request.path_params["name"]
    if not _is_known(name):
        return _unknown()
    root = get_root_url(request, f"{PATH}/{name}", None)
    words = {"title": TITLE, "description": DESCRIPTION, "image": f"{root}{PATH}/{name}.jpg"}
    escaped = {key: escape(value) for key, value in words.items()}
    return HTMLResponse(_PAGE.format(**escaped, size=SIZE, script=_OPEN, digest=_DIGEST))


def _unknown() -> Response:
    return PlainTextResponse("There is no such example: open the page.", 404, {"cache-control": "no-store"})


def _is_known(name: str) -> bool:
    return name in NAMES or bool(_strokes(name))


def _strokes(name: str) -> list[tuple[float, int, list[Point]]]:
    """The strokes in a name, as ``decodeStrokes`` of ``pad/strokes.js`` reads them; none of any other name."""
    match = _STROKES.fullmatch(name)
    if match is None or len(match[1]) % 4 == 1:
        return []
    data, strokes = urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)), []
    while data:
        pen, count = data[0] >> 4, int.from_bytes(data[:2]) & 4095
        places = [int.from_bytes(data[at : at + 3]) for at in range(2, 2 + 3 * count, 3)]
        if not places or pen >= len(_PENS) or len(data) < 2 + 3 * count:
            return []
        strokes.append((*_PENS[pen], [((place >> 12) / 4095, (place & 4095) / 4095) for place in places]))
        data = data[2 + 3 * count :]
    return strokes


def picture(name: str) -> bytes:
    """The picture for a preview, a JPEG: an example photo, or a digit or drawing under a grid."""
    page = Image.new("RGB", SIZE, COLOURS["body_background_fill"][0])
    if name in EXAMPLE_PHOTOS:
        shown = ImageOps.contain(images.read_image(EXAMPLE_PHOTOS[name].path).convert("RGB"), SIZE)
    else:
        digit = example_picture(int(name[-1])) if name in NAMES else drawn(_strokes(name))
        shown = digit.convert("RGB").resize((SIZE[1], SIZE[1]), Image.Resampling.LANCZOS)
        draw = ImageDraw.Draw(shown)
        for number in range(1, _SQUARES):
            cut = number * SIZE[1] // _SQUARES
            draw.line([(cut, 0), (cut, SIZE[1])], "#d4d4da", 2)
            draw.line([(0, cut), (SIZE[1], cut)], "#d4d4da", 2)
    page.paste(shown, ((SIZE[0] - shown.width) // 2, (SIZE[1] - shown.height) // 2))
    buffer = io.BytesIO()
    page.save(buffer, "jpeg", quality=82)
    return buffer.getvalue()
