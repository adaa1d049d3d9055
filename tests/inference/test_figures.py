"""Overlays: colours, size and place of a map, and several side by side."""

import io

import numpy as np
import pytest
import torch
from matplotlib import colormaps
from PIL import Image

import vit_demo
from vit_demo.errors import InputError

from ..trace.networks import own

PIXELS = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def photo() -> vit_demo.Exploration:
    """The central square of a wide grey photo."""
    return vit_demo.explore(Image.new("RGB", (128, 64), (90, 90, 90)), "photos-tiny")


def one_patch(ex: vit_demo.Exploration, row: int, col: int, value: float = 1.0) -> np.ndarray:
    values = np.zeros(ex.grid, np.float32)
    values[row, col] = value
    return values


def test_a_colour_map_of_matplotlib_gives_its_colours(photo):
    red = np.asarray(photo.overlay(one_patch(photo, 0, 0), alpha=1, cmap="autumn"))
    assert np.allclose(red[1, 1], 255 * np.array(colormaps["autumn"](1.0)[:3]), atol=1)
    assert (red[-1, -1] == 90).all()
    signed = np.asarray(photo.overlay(one_patch(photo, 0, 0, -1), alpha=1, cmap="coolwarm"))
    assert np.allclose(signed[1, 1], 255 * np.array(colormaps["coolwarm"](0.0)[:3]), atol=1)
    assert not np.array_equal(red, np.asarray(photo.overlay(one_patch(photo, 0, 0), alpha=1)))


def test_the_size_is_that_of_the_longest_side(photo):
    assert photo.overlay(photo.attention(), size=100).size == (100, 100)
    assert photo.overlay(photo.attention(), size=300, on="photo").size == (300, 150)


def test_on_the_photo_a_map_lies_where_the_model_looked(photo):
    left, _, right, _ = photo.geometry.box
    assert 0 < left < right < 128
    painted = np.asarray(photo.overlay(np.ones(photo.grid), alpha=1, size=128, on="photo"))
    changed = np.flatnonzero((painted != 90).any(2).any(0))
    assert abs(changed[0] - left) <= 1 and abs(changed[-1] + 1 - right) <= 1
    corner = np.asarray(photo.overlay(one_patch(photo, 0, 0), alpha=1, size=128, on="photo"))
    assert abs(np.flatnonzero((corner != 90).any(2).any(0))[0] - left) <= 1


def test_what_cannot_be_drawn_is_refused(photo):
    values = photo.attention()
    for options, words in [
        ({"cmap": "no such"}, "colour map"), ({"size": 0}, "size"), ({"size": 10**6}, "size"), ({"on": "x"}, "on must"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=words):
            photo.overlay(values, **options)
    digit = Image.new("L", (28, 28))
    digit.paste(255, (12, 4, 15, 24))
    drawing = vit_demo.explore(digit, "digits-tiny")
    with pytest.raises(InputError, match="has no photo"):
        drawing.overlay(drawing.attention(), on="photo")


def test_maps_stand_side_by_side():
    dog = r"$\dog$"  # an error if it were read as a formula
    ex = vit_demo.explore(PIXELS, own(), labels=["ant", "bee", "cat", dog, "eel"])
    figure = ex.side_by_side(["attention", "relevance", np.ones(ex.grid)], label=dog)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[0] == "Input" and titles[2].endswith(dog) and titles[3] == "Map 3" and "dog" not in titles[1]
    shown = [np.asarray(axis.images[0].get_array()) for axis in figure.axes]
    assert np.array_equal(shown[2], np.asarray(ex.overlay(ex.relevance(dog), method="relevance")))
    figure.savefig(buffer := io.BytesIO())
    assert Image.open(buffer).width > 500
    with pytest.raises(InputError, match="did you mean 'rollout'"):
        ex.side_by_side(["rolout"])
