import numpy as np
import pytest
from matplotlib import colormaps
from PIL import Image

from vit_demo.render import contact_sheet, heat_colours, ink_on_paper, overlay
from vit_demo.render.colours import SCALE, SIGNED_SCALE


@pytest.mark.parametrize(
    ("stops", "name", "places"),
    [
        (SCALE, "magma", np.linspace(0.88, 0.48, 9)),
        (SIGNED_SCALE, "RdBu_r", np.linspace(0.1, 0.9, 9)),
    ],
)
def test_the_colours_are_those_of_matplotlib(stops, name, places):
    expected = 255 * colormaps[name](places)[:, :3]
    np.testing.assert_allclose(stops, expected, atol=0.5)


def test_colours_get_deeper_with_the_value():
    colours = heat_colours(np.linspace(0, 1, 32), 1.0)
    assert colours.shape == (32, 4)
    assert (np.diff(colours[:, :3] @ [0.2126, 0.7152, 0.0722]) < 0).all() and (np.diff(colours[:, 3]) > 0).all()


@pytest.mark.parametrize("name", ["autumn", "winter", "bwr"])
def test_the_strongest_values_have_the_end_colours_of_a_colour_map_of_matplotlib(name):
    shown = overlay(Image.new("RGB", (32, 32)), np.array([[-1.0, 1.0]]), alpha=1, display_size=32, cmap=name)
    ends = colormaps[name]([0.0, 1.0], bytes=True)[:, :3]
    np.testing.assert_allclose(np.asarray(shown, int)[16, [8, 24]], ends, atol=1)


def test_an_overlay_has_the_shape_of_its_picture_and_is_brightest_where_the_map_is():
    picture = Image.new("RGB", (60, 30), "black")
    values = np.zeros((2, 4), np.float32)
    values[1, 3] = 1
    shown = overlay(picture, values, alpha=1.0, display_size=400)
    assert shown.size == (400, 200)
    cells = np.asarray(shown.convert("L"), float).reshape(2, 100, 4, 100).mean((1, 3))
    assert np.unravel_index(cells.argmax(), cells.shape) == (1, 3)


def test_an_opacity_of_zero_and_on_paper_a_map_of_zeros_leave_the_picture():
    photo = Image.effect_noise((448, 448), 60).convert("RGB")
    assert np.array_equal(np.asarray(overlay(photo, np.ones((3, 3), np.float32), alpha=0.0)), np.asarray(photo))
    drawing = Image.effect_noise((28, 28), 60)
    shown = overlay(drawing, np.zeros((7, 7), np.float32), display_size=28)
    assert np.array_equal(np.asarray(shown)[..., 0], np.asarray(ink_on_paper(drawing)))


def test_a_drawing_is_dark_ink_on_light_paper_and_stays_readable_under_the_strongest_patch():
    drawing = Image.fromarray(np.tile(np.array([0, 255], np.uint8), (28, 14)))
    shown = np.asarray(overlay(drawing, np.eye(2, dtype=np.float32), display_size=28).convert("L"), int)
    paper, ink = shown[:, ::2], shown[:, 1::2]
    assert (paper - ink > 40).all()
    assert paper[20, 2] > 240 and paper[2, 2] < 200


def test_values_below_zero_have_their_own_colour():
    shown = np.asarray(overlay(Image.new("L", (28, 28)), np.array([[1.0, -1.0], [0, 0.5]]), display_size=28), int)
    positive, negative, zero = shown[3, 3], shown[3, 20], shown[20, 3]
    assert positive[0] > positive[2] + 40 and negative[2] > negative[0] + 40
    assert np.ptp(zero) == 0
    flat = np.asarray(overlay(Image.new("L", (28, 28)), np.array([[1.0, -1.0]]), display_size=28, signed=False), int)
    assert np.ptp(flat[3, 20]) == 0, "a method without signs shows them as 0"


@pytest.mark.parametrize("signed", [False, True])
def test_a_photo_is_grey_below_a_map(signed):
    found = np.asarray(overlay(Image.new("RGB", (32, 32), (200, 120, 40)), np.zeros((2, 2)), signed=signed), int)
    assert (np.abs(found - round(0.299 * 200 + 0.587 * 120 + 0.114 * 40)) <= 1).all()


def test_colours_end_at_the_largest_absolute_value():
    picture, values = Image.new("RGB", (32, 32)), np.array([[1.0, 0.0], [0.0, 4.0]])
    above, below = (overlay(picture, np.where(values == 4, end, values), signed=True) for end in (4.0, -4.0))
    assert np.array_equal(above.crop((0, 0, 224, 224)), below.crop((0, 0, 224, 224)))
    assert not np.array_equal(above, below)


def test_a_map_below_its_floor_is_faint():
    drawing = Image.new("L", (28, 28))
    values = np.array([[0.0001, 0.0]])
    strong, faint = (np.asarray(overlay(drawing, values, floor=floor), int)[5, 5] for floor in (0.0, 0.01))
    paper = np.asarray(overlay(drawing, 0 * values), int)[5, 5]
    assert np.abs(strong - paper).max() > 40 and np.abs(faint - paper).max() < 15


@pytest.mark.parametrize("side", [4, 10, 11, 30])
def test_each_patch_is_drawn_as_a_square_unless_a_smooth_map_is_asked_for(side):
    values = np.random.default_rng(0).random((side, side))
    picture = Image.new("RGB", (16 * side, 16 * side), "white")
    squares = np.asarray(overlay(picture, values, display_size=16 * side))
    np.testing.assert_array_equal(squares, squares[8::16, 8::16].repeat(16, 0).repeat(16, 1))
    smooth = np.asarray(overlay(picture, values, display_size=16 * side, smooth=True))
    assert len(np.unique(smooth.reshape(-1, 3), axis=0)) > 2 * side**2


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("nothing", [0.0, np.nan, np.inf])
def test_the_picture_is_left_as_it_is_where_there_is_no_value(mode, signed, nothing):
    picture = Image.effect_noise((32, 32), 90).convert(mode)
    values = np.array([[0.0, 1.0], [-1.0 if signed else 0.5, nothing]])
    shown, plain = (
        np.asarray(overlay(picture, values, alpha=alpha, display_size=32, signed=signed), int) for alpha in (1, 0)
    )
    for part in (np.s_[:16, :16], np.s_[16:, 16:]):
        np.testing.assert_array_equal(shown[part], plain[part])
    assert np.abs(shown - plain)[:16, 16:].max() > 40


def test_the_sheet_has_one_row_per_head_and_one_column_per_block():
    sheet = contact_sheet(Image.new("L", (28, 28)), np.random.rand(6, 4, 7, 7), cell=50, gap=10)
    assert sheet.size == (6 * 60 + 10, 4 * 60 + 10)
