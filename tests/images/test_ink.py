"""Which pixels are ink: on a pad that is mostly ink, among specks, on coloured paper."""

import numpy as np
import pytest
from PIL import Image

from vit_demo.images.ink import _contrast_under_uneven_light, find_ink


def ink_of(pad: np.ndarray) -> np.ndarray | None:
    found = find_ink(Image.fromarray(pad))
    return None if found is None else found[0]


@pytest.mark.parametrize(("paper", "stroke"), [(0, 255), (60, 195), (255, 0), (200, 100)])
def test_paper_is_what_covers_the_border_even_if_most_of_the_picture_is_ink(paper: int, stroke: int):
    pad = np.full((100, 100, 3), paper, np.uint8)
    pad[12:88, 12:88] = stroke  # 58 % of the picture
    ink = ink_of(pad)
    assert ink is not None
    assert (ink[12:88, 12:88] == 1).all() and ink.sum() == 76 * 76


@pytest.mark.parametrize(("level", "kept"), [(255 - 64, False), (0, True)])
def test_a_speck_is_measured_by_its_ink_and_not_by_its_area(level: int, kept: bool):
    pad = np.full((90, 90, 3), 255, np.uint8)
    pad[10:50, 10:35] = 0  # 1,000 pixels of full ink
    pad[60:65, 60:67] = level  # 35 pixels: 3.5 % of it if they are black, less than 1 % if they are light grey
    ink = ink_of(pad)
    assert ink is not None and bool(ink[62, 63]) is kept


def test_a_dotted_line_is_measured_by_its_dots_and_not_by_its_cells():
    pad = np.full((280, 280, 3), 255, np.uint8)
    pad[20:140, 20:95] = 0  # 9,000 pixels in 1,000 cells
    pad[200, 100:205:3] = 0  # 35 pixels, each in a cell of its own
    ink = ink_of(pad)
    assert ink is not None and not ink[200].any() and ink.sum() == 9000


@pytest.mark.parametrize("size", [(200, 131), (97, 193), (288, 96)])
def test_specks_are_erased_up_to_the_last_pixel_and_strokes_are_kept(size: tuple[int, int]):
    """Whole cells are searched for specks, and these sides are no multiples of a cell's."""
    pad = np.full((*size, 3), 255, np.uint8)
    pad[20:70, 20:60] = 0
    clean = ink_of(pad)
    pad[-2:, -2:] = 0  # a speck in the last corner
    found = ink_of(pad)
    assert clean is not None and found is not None
    assert clean[20:70, 20:60].all() and clean.sum() == 50 * 40 and (found == clean).all()


@pytest.mark.parametrize(("length", "empty"), [(1, True), (2, False)])
def test_two_pixels_of_a_small_pad_are_a_mark_and_one_is_a_speck(length: int, empty: bool):
    pad = np.full((28, 28, 3), 255, np.uint8)
    pad[14, 10 : 10 + length] = 0
    assert (ink_of(pad) is None) is empty


@pytest.mark.parametrize("colour", [(250, 240, 120), (40, 60, 200)])
def test_coloured_paper_has_no_contrast_to_itself(colour: tuple[int, int, int]):
    """Each colour channel is compared with the paper's own."""
    shade = np.linspace(1, 0.8, 90)[:, None, None]
    paper = Image.fromarray((shade * np.array(colour) * np.ones((90, 90, 1))).astype(np.uint8))
    assert np.abs(_contrast_under_uneven_light(paper)).max() < 20
