"""The example photos of the page, with small copies at the sizes at which the browser shows them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageOps

from vit_demo import images

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

PREVIEW_SIZE = 520, 192  # largest size of a preview in pixels: twice its frame on the page, for dense screens
BUTTON_SIZE = 88, 88  # largest size of an example's button, likewise


@dataclass(frozen=True)
class ExamplePhoto:
    """A photo of this package or of Gradio.

    Attributes:
        name: Its name in links and requests: lower-case letters, digits and hyphens.
        title: What it shows, for people who cannot see it.
        path: The file.
        source: The photographer or origin; ``examples/README.md`` has the addresses.
        licence: Its licence.
    """

    name: str
    title: str
    path: Path
    source: str
    licence: str


FOLDER = Path(__file__).parents[1] / "examples"


def _photo(file: str, title: str, source: str, licence: str = "CC0 1.0") -> ExamplePhoto:
    return ExamplePhoto(Path(file).stem, title, FOLDER / file, source, licence)


def _of_gradio(file: str, title: str) -> ExamplePhoto:
    spec = find_spec("gradio")  # does not import it
    folder = Path(spec.origin).parent if spec and spec.origin else FOLDER
    path = folder / "media_assets" / "images" / file
    return ExamplePhoto(path.stem, title, path, "Gradio’s media assets", "Apache-2.0")


EXAMPLE_PHOTOS = {
    photo.name: photo
    for photo in (
        _of_gradio("lion.jpg", "Lion"),
        _photo("cat.jpg", "Tabby cat", "Stéfan van der Walt"),
        _photo("goldfish.jpg", "Goldfish", "Skitterphoto"),
        _photo("german-shepherd.jpg", "German shepherd", "Hans Kemperman", "public domain"),
        _photo("espresso.jpg", "Espresso", "Rachel Michetti"),
        _photo("church.jpg", "Cathedral of Reims", "Mattana", "public domain"),
        _photo("mountains.jpg", "Mountains over Lake Sherburne", "Budgie Desktop Developers"),
        _photo("koala.jpg", "Koala", "BurningWell", "public domain"),
        _photo("tiger.jpg", "Tiger", "Pexels"),
    )
}
"""The example photos in the order of the page; the photo tab opens with the first."""


def routes(prefix: str) -> list[Route]:
    """The routes of the copies, below a prefix."""
    from starlette.responses import PlainTextResponse, Response  # here, because notebooks import the photos, too
    from starlette.routing import Route

    def serve(request: Request) -> Response:
        name, size = request.path_params["name"], request.path_params["size"]
        if name not in EXAMPLE_PHOTOS or size not in ("preview", "button"):
            return PlainTextResponse("There is no such example: reload the page.", 404, {"cache-control": "no-store"})
        return Response(_copy(name, size), media_type="image/webp", headers={"cache-control": "public, max-age=86400"})

    return [Route(f"{prefix}/examples/{{size}}/{{name}}.webp", serve)]


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
