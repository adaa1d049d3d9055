import numpy as np
from PIL import Image

from vit_demo.render import colourise, contact_sheet, overlay


def test_colours_get_lighter_with_the_value():
    colours = colourise(np.linspace(0, 1, 32, dtype=np.float32)[None])
    lightness = colours.astype(float) @ [0.2126, 0.7152, 0.0722]
    assert colours.dtype == np.uint8 and colours.shape == (1, 32, 3)
    assert (np.diff(lightness[0]) > 0).all()


def test_an_overlay_has_the_shape_of_its_picture_and_is_brightest_where_the_map_is():
    picture = Image.new("RGB", (60, 30), "black")
    values = np.zeros((2, 4), np.float32)
    values[1, 3] = 1
    shown = overlay(picture, values, alpha=1.0, display_size=400)
    assert shown.size == (400, 200)
    cells = np.asarray(shown.convert("L"), float).reshape(2, 100, 4, 100).mean((1, 3))
    assert np.unravel_index(cells.argmax(), cells.shape) == (1, 3)


def test_a_map_of_zeros_and_an_opacity_of_zero_leave_the_picture():
    picture = Image.effect_noise((448, 448), 60).convert("RGB")
    for values, alpha in ((np.ones((3, 3), np.float32), 0.0),):
        assert np.array_equal(np.asarray(overlay(picture, values, alpha=alpha)), np.asarray(picture))
    assert overlay(picture, np.zeros((3, 3), np.float32)).size == (448, 448)


def test_the_sheet_has_one_row_per_head_and_one_column_per_block():
    sheet = contact_sheet(Image.new("L", (28, 28)), np.random.rand(6, 4, 7, 7), cell=50, gap=10)
    assert sheet.size == (6 * 60 + 10, 4 * 60 + 10)
