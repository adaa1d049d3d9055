"""The example photos and the model that is bundled for photos."""

import io

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

import vit_demo
from vit_demo.web.catalog import example_photos
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.frontend.modules import PREFIX
from vit_demo.weights import PRESETS

DOUBTED = "tiger"  # not among the classes
WORDS = {"cat": "tabby cat", "german-shepherd": "German shepherd", "mountains": "alp"}


@pytest.mark.parametrize("patch_size", PRESETS["photos-tiny"].patch_sizes)
def test_every_example_is_recognised_with_confidence_but_the_one_that_is_not_among_the_classes(patch_size: int):
    for name, example in EXAMPLE_PHOTOS.items():
        result = vit_demo.explore(example.path, "photos-tiny", patch_size=patch_size)
        assert result.is_confident == (name != DOUBTED), name
        assert name == DOUBTED or result.top(1)[0][0] == WORDS.get(name, name)


@pytest.mark.parametrize(("size", "width", "height"), [("button", 88, 88), ("preview", 520, 192)])
def test_copies_are_as_large_as_the_page_shows_them(size: str, width: int, height: int):
    client = TestClient(Starlette(routes=list(example_photos.routes(PREFIX))))
    for name in EXAMPLE_PHOTOS:
        reply = client.get(f"{PREFIX}/examples/{size}/{name}.webp")
        picture = Image.open(io.BytesIO(reply.content))
        assert picture.width <= width and picture.height <= height
        assert picture.width == width or picture.height == height
        assert len(reply.content) < (4_000 if size == "button" else 16_000)
    for path in (f"{size}/none", f"none/{name}", name):
        assert client.get(f"{PREFIX}/examples/{path}.webp").status_code == 404
