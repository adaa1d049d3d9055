"""The patch of a point in a stored picture, for every orientation of the camera and every fit."""

import io
import itertools

import numpy as np
import pytest
from PIL import Image

from vit_demo.images import preprocess
from vit_demo.images.decoder import decode
from vit_demo.images.geometry import model_view

WIDTH, HEIGHT = 160, 96  # as stored
PATCH, SIDE = 8, 32

# Where the EXIF standard puts a stored point, (x, y) from the top left corner, in the upright picture.
UPRIGHT = {
    1: lambda x, y: (x, y),
    2: lambda x, y: (WIDTH - x, y),
    3: lambda x, y: (WIDTH - x, HEIGHT - y),
    4: lambda x, y: (x, HEIGHT - y),
    5: lambda x, y: (y, x),
    6: lambda x, y: (HEIGHT - y, x),
    7: lambda x, y: (HEIGHT - y, WIDTH - x),
    8: lambda x, y: (y, WIDTH - x),
}


def stored(orientation: int, x: int, y: int) -> bytes:
    """A black file that is to be turned, with a white square of 20 pixels round one stored point."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[max(0, y - 10) : y + 10, max(0, x - 10) : x + 10] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=exif)
    return file.getvalue()


@pytest.mark.parametrize("fit", ["crop", "squash", "keep"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_click_finds_the_patch_that_the_network_saw(orientation: int, fit: str):
    found = 0
    for x, y in itertools.product((13, 45, 70, 99, 140), (13, 41, 83)):
        picture = decode(stored(orientation, x, y))
        tensor, geometry = preprocess(
            picture, image_size=SIDE, patch_size=PATCH, mean=(0, 0, 0), std=(1, 1, 1), mode=fit
        )
        assert geometry.source_size == ((WIDTH, HEIGHT) if orientation < 5 else (HEIGHT, WIDTH))
        rows, cols = tensor.shape[2] // PATCH, tensor.shape[3] // PATCH
        brightness = tensor[0].reshape(3, rows, PATCH, cols, PATCH).mean((0, 2, 4))
        left, top, right, bottom = geometry.box
        across = (UPRIGHT[orientation](x, y)[0] - left) / (right - left)
        down = (UPRIGHT[orientation](x, y)[1] - top) / (bottom - top)
        if not (0 <= across < 1 and 0 <= down < 1):
            assert brightness.max() < 0.3, "only the edge of the mark may reach into what was seen"
            continue
        found += 1
        assert brightness.argmax() == int(down * rows) * cols + int(across * cols)
    assert found == (9 if fit == "crop" else 15)


@pytest.mark.parametrize("crop_mode", ["center", "squash", "border"])
@pytest.mark.parametrize("size", [(WIDTH, HEIGHT), (HEIGHT, WIDTH)])
def test_a_picture_with_bars_is_shown_as_the_network_saw_it(crop_mode: str, size: tuple[int, int]) -> None:
    picture = Image.merge("RGB", [Image.linear_gradient("L").rotate(turn).resize(size) for turn in (0, 90, 180)])
    tensor, geometry = preprocess(
        picture, image_size=SIDE, patch_size=PATCH, mean=(0, 0, 0), std=(1, 1, 1), crop_fraction=1.6,
        crop_mode=crop_mode,
    )  # fmt: skip
    assert (geometry.mode == "border" and not tensor[..., SIDE // 2, 0].any()) or not tensor[..., 0, SIDE // 2].any()
    view = np.asarray(model_view(picture, geometry, 8 * SIDE).resize((SIDE, SIDE), Image.Resampling.BOX))
    np.testing.assert_allclose(view / 255, tensor[0].permute(1, 2, 0), atol=0.08)
