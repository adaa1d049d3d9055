"""A picture where visitors' pictures are."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from vit_demo.web import uploads


@pytest.fixture
def upload() -> Callable[[Image.Image], dict[str, str]]:
    """Puts a picture into the upload folder and gives what a page would send for it."""

    def put(picture: Image.Image, name: str = "photo.png") -> dict[str, str]:
        path: Path = uploads.folder() / secrets.token_hex(32) / name
        path.parent.mkdir()
        picture.save(path)
        return {"path": str(path)}

    return put
