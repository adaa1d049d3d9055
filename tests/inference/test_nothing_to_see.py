"""Pictures in which there is nothing to see get no sure answer."""

import pytest
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.inference.engine import get_engine


@pytest.mark.parametrize("size", [(1, 1), (15, 400), (400, 15)])
def test_a_photo_with_too_few_pixels_is_refused(size):
    picture = Image.new("RGB", size, "red")
    with pytest.raises(ImageError, match=f"too small, {size[0]} x {size[1]} pixels: choose one with at least"):
        get_engine().explore(picture, "photos-tiny")
    assert get_engine().explore(Image.effect_noise((16, 16), 80), "photos-tiny").grid == (10, 10)


@pytest.mark.parametrize("colour", ["red", "black", "white", "#7f7f7f"])
def test_a_plain_colour_never_gets_a_sure_answer(colour):
    assert not get_engine().explore(Image.new("RGB", (200, 120), colour), "photos-tiny").is_confident
