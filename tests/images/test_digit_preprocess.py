"""The result does not depend on how a digit is drawn: ink, place, size, light."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from vit_demo.errors import EmptyDrawingError
from vit_demo.images import ImageSource, place_digit, to_mnist
from vit_demo.images.digit_preprocess import INK_SIDE, _fit, _stroke_width

SEVEN = [(0.1, 0.1), (0.8, 0.1), (0.3, 0.9)]
FIVE = [(0.8, 0.0), (0.2, 0.0), (0.15, 0.45), (0.6, 0.4), (0.8, 0.65), (0.6, 0.95), (0.1, 0.9)]
TWO = [(0.15, 0.25), (0.4, 0.0), (0.75, 0.2), (0.6, 0.5), (0.1, 1.0), (0.9, 1.0)]
DIGITS = [SEVEN, FIVE, TWO]


def is_empty(image: ImageSource) -> bool:
    try:
        to_mnist(image)
    except EmptyDrawingError:
        return True
    return False


def draw(
    points: list[tuple[float, float]] = FIVE,
    *,
    pad: int = 280,
    size: float = 160,
    at: tuple[float, float] = (60, 60),
    pen: float = 18,
    ink: str = "black",
    paper: str = "white",
    smooth: int = 4,
) -> Image.Image:
    """Draws a line with round ends, larger and then reduced so that its edges are smooth."""
    image = Image.new("RGB", (pad * smooth, pad * smooth), paper)
    pencil = ImageDraw.Draw(image)
    path = [(smooth * (at[0] + size * x), smooth * (at[1] + size * y)) for x, y in points]
    pencil.line(path, fill=ink, width=max(1, round(pen * smooth)))
    for x, y in path:
        r = pen * smooth / 2
        pencil.ellipse((x - r, y - r, x + r, y + r), fill=ink)
    return image.reduce(smooth)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference over the ink, as a share of full ink."""
    return np.abs(a.astype(int) - b).sum() / max(a.sum(), b.sum(), 1)


def photo(sheet: Image.Image, light: Callable[[np.ndarray, np.ndarray], np.ndarray], noise: float = 4) -> Image.Image:
    """Puts a drawing under uneven light, 0 to 1 at (x, y) from 0 to 1, and a camera's noise; ink is not quite black."""
    pixels = 0.2 + 0.8 * np.asarray(sheet.filter(ImageFilter.GaussianBlur(1)), dtype=float) / 255
    y, x = np.mgrid[0 : sheet.height, 0 : sheet.width] / sheet.height
    pixels = 255 * pixels * light(x, y)[..., None]
    pixels += np.random.default_rng(0).normal(0, noise, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("points", DIGITS)
def test_mnist_format(points: list[tuple[float, float]]):
    digit = to_mnist(draw(points))
    assert digit.dtype == np.uint8 and digit.shape == (28, 28)
    assert digit.max() == 255
    rows, cols = np.nonzero(digit > 40)
    assert max(np.ptp(rows), np.ptp(cols)) + 1 in (19, 20)
    y, x = (np.average(np.arange(28), weights=digit.sum(axis=axis)) for axis in (1, 0))
    assert abs(y - 14) <= 0.51 and abs(x - 14) <= 0.51  # LeCun et al. shift by whole pixels
    assert np.unique(digit).size > 10  # smooth edges


@pytest.mark.parametrize("points", DIGITS)
def test_idempotent(points: list[tuple[float, float]]):
    for pen in (1, 8, 18, 30):
        digit = to_mnist(draw(points, pen=pen))
        assert np.array_equal(to_mnist(digit), digit)
        assert np.array_equal(to_mnist(255 - digit), digit)


@pytest.mark.parametrize("points", DIGITS)
def test_a_misplaced_digit_is_only_moved(points: list[tuple[float, float]]):
    digit = to_mnist(draw(points))
    for top, left in ((0, 0), (12, 3), (5, 12)):
        moved = np.pad(digit, ((top, 12 - top), (left, 12 - left)))
        assert np.abs(to_mnist(moved).astype(int) - digit).mean() < 0.5


@pytest.mark.parametrize(
    ("ink", "paper"),
    [("white", "black"), ("blue", "white"), ("yellow", "white"), ("blue", "black"), ("#bbb", "white"), ("red", "lime")],
)
def test_any_ink_on_any_paper(ink: str, paper: str):
    assert difference(to_mnist(draw(ink=ink, paper=paper)), to_mnist(draw())) < 0.02


def test_ink_on_a_transparent_pad():
    alpha = 255 - np.asarray(draw().convert("L"))
    pad = np.dstack([np.zeros((*alpha.shape, 3), dtype=np.uint8), alpha])
    assert difference(to_mnist(pad), to_mnist(draw())) < 0.02


@pytest.mark.parametrize("at", [(12, 12), (105, 12), (12, 105), (105, 105)])
def test_any_place(at: tuple[float, float]):
    assert difference(to_mnist(draw(at=at)), to_mnist(draw(at=(60, 60)))) < 0.02


@pytest.mark.parametrize(("size", "pad"), [(40, 280), (80, 280), (230, 280), (400, 1200)])
def test_any_size(size: float, pad: int):
    result = to_mnist(draw(pad=pad, size=size, pen=size / 9, at=(22, 22), smooth=2))
    assert difference(result, to_mnist(draw(pen=160 / 9))) < (0.4 if size < 80 else 0.12)  # few pixels to go by


@pytest.mark.parametrize("side", [18, 22])
def test_a_digit_of_nearly_the_right_size_is_scaled_to_it(side: int):
    fitted, _ = _fit(np.ones((side, 3), np.float32), (0, 0, 3, side))
    assert max(fitted.shape) == INK_SIDE


def test_proportions_are_kept():
    rows, cols = np.nonzero(to_mnist(draw([(0.5, 0), (0.5, 1)], size=200)) > 60)
    assert np.ptp(rows) + 1 == 20 and np.ptp(cols) + 1 <= 3


@pytest.mark.parametrize("pen", [0.25, 1, 4, 12, 20, 40, 70])
def test_strokes_come_into_the_range_of_mnist(pen: float):
    digit = to_mnist(draw(pen=pen, at=(40, 40), size=200)).astype(float) / 255
    # An upright 2-pixel stroke of length L has area 2 L; this drawing is between 45 and 60 pixels long after fitting.
    assert 1.0 < digit.sum() / 50 < 5.2
    assert (digit > 0.6).sum() > 20


def test_thin_parts_of_a_thick_drawing_survive():
    """Strokes that are much too thick are eroded; without a limit that would remove the thinner ones altogether."""
    image = Image.new("L", (280, 280), 255)
    pencil = ImageDraw.Draw(image)
    pencil.rectangle((60, 40, 150, 240), fill=0)  # 9 pixels wide at the size of the result
    pencil.rectangle((150, 125, 250, 155), fill=0)  # 3 pixels
    digit = to_mnist(image)
    _, cols = np.nonzero(digit > 60)
    assert np.ptp(cols) + 1 >= 17


@pytest.mark.parametrize("width", [6, 12, 30])
def test_the_width_of_a_ring_is_measured(width: int):
    y, x = np.mgrid[-100:101, -100:101]
    radius = np.hypot(x, y)
    assert _stroke_width((radius > 60) & (radius <= 60 + width)) == pytest.approx(width, rel=0.08)


def test_a_one_pixel_pen_on_a_large_pad_survives():
    image = Image.new("L", (2000, 2000), 255)
    ImageDraw.Draw(image).line([(300 + 1400 * x, 300 + 1400 * y) for x, y in FIVE], fill=0, width=1)
    assert difference(to_mnist(image), to_mnist(draw(pen=12))) < 0.3


def test_specks_are_ignored():
    image = draw()
    ImageDraw.Draw(image).ellipse((4, 4, 9, 9), fill="black")
    assert difference(to_mnist(image), to_mnist(draw())) < 0.02


def test_separate_strokes_are_kept():
    image = draw([(0.3, 0), (0.3, 1)])
    assert difference(to_mnist(image), to_mnist(draw([(0.5, 0), (0.5, 1)]))) < 0.05
    ImageDraw.Draw(image).line([(160, 60), (160, 220)], fill="black", width=18)
    columns = to_mnist(image).sum(axis=0) > 500
    assert np.abs(np.diff(columns.astype(int))).sum() == 4  # two bars


def test_jpeg_of_a_pad():
    file = io.BytesIO()
    draw().save(file, "JPEG", quality=60)
    assert difference(to_mnist(file.getvalue()), to_mnist(draw())) < 0.08


@pytest.mark.parametrize(
    "light",
    [
        lambda x, y: 0.4 + 0.5 * x,
        lambda x, y: 0.9 - 0.35 * ((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.5,
        lambda x, y: np.where(x + y > 0.9, 0.9, 0.45),
    ],
    ids=["slope", "vignette", "shadow"],
)
def test_photos_of_paper(light: Callable[[np.ndarray, np.ndarray], np.ndarray]):
    sheet = draw(pad=420, at=(120, 120), size=200, smooth=2)
    assert difference(to_mnist(photo(sheet, light)), to_mnist(sheet)) < 0.25
    assert is_empty(photo(Image.new("RGB", (420, 420), "white"), light))


SHEETS = {
    "a drawing": draw(),
    "a wide pad, near its corner": draw(at=(15, 10), size=120).crop((0, 0, 280, 200)),
    "white on black": draw(ink="white", paper="black"),
    "a thick pen": draw(SEVEN, size=90, pen=40, at=(95, 80)),
    "a thin pen": draw(TWO, pad=600, size=400, at=(90, 120), pen=3),
    "a narrow 1": draw([(0, 0), (0.02, 1)], size=200, at=(200, 40)),
    "almost MNIST's size": draw(pad=40, size=16, at=(4, 9), pen=2.5),
    "in MNIST's format": Image.fromarray(to_mnist(draw())).convert("RGB"),
    "a large scan": draw(pad=1500, size=900, at=(200, 300), pen=90, smooth=1),
}


def framed(sheet: Image.Image) -> Image.Image:
    larger = Image.new("RGB", (sheet.width, sheet.height + 160), "black")
    larger.paste(sheet, (0, 80))
    return larger


@pytest.mark.parametrize(
    ("sheet", "picture", "top"),
    [
        *(pytest.param(sheet, sheet, 0, id=name) for name, sheet in SHEETS.items()),
        pytest.param(draw(), photo(draw(), lambda x, y: 0.5 + 0.4 * x), 0, id="a photo"),
        pytest.param(draw(), framed(draw()), 80, id="between bars"),
    ],
)
def test_the_square_that_the_network_gets_lies_where_its_ink_is(sheet: Image.Image, picture: Image.Image, top: int):
    digit, place = place_digit(picture)
    left, upper, right, lower = place.box
    assert right - left == pytest.approx(lower - upper) and place.source_size == picture.size
    np.testing.assert_array_equal(digit, to_mnist(picture))
    levels = np.asarray(sheet.convert("L"), float)
    ink = np.abs(levels - levels[0, 0])
    for axis, first in ((1, upper - top), (0, left)):
        edges = []
        for pixels, start, scale in ((ink, first, 28 / (right - left)), (digit.astype(float), 0, 1)):
            found = np.flatnonzero((pixels > 100).any(axis))
            ends = np.array(
                [found[0], found[-1] + 1, (np.arange(len(pixels.sum(axis))) + 0.5) @ pixels.sum(axis) / pixels.sum()]
            )
            edges.append((ends - start) * scale)
        np.testing.assert_allclose(*edges, atol=1.5)  # thick strokes become thinner
        assert abs(edges[0][2] - edges[1][2]) < 0.5, "the centre of mass"


def test_photo_of_a_blackboard():
    board = draw(pad=420, at=(120, 120), size=200, smooth=2, ink="white", paper="#303830")
    lit = photo(board, lambda x, y: 0.75 + 0.25 * y)
    assert difference(to_mnist(lit), to_mnist(board)) < 0.25


@pytest.mark.parametrize("side", [1, 2, 28, 280])
@pytest.mark.parametrize("level", [0, 7, 128, 255])
def test_uniform_pads_are_empty(side: int, level: int):
    pad = np.full((side, side), level, dtype=np.uint8)
    assert is_empty(pad)
    with pytest.raises(
        EmptyDrawingError, match=r"^No digit is seen: draw one, or choose a photo of dark ink on light paper\.$"
    ):
        to_mnist(pad)


def test_transparent_pads_are_empty():
    assert is_empty(np.zeros((280, 280, 4), dtype=np.uint8))


@pytest.mark.parametrize("side", [28, 280, 1000])
@pytest.mark.parametrize("paper", [0, 255])
def test_a_speck_is_empty(side: int, paper: int):
    pad = np.full((side, side), paper, dtype=np.uint8)
    pad[side // 3, side // 2] = 255 - paper
    assert is_empty(pad)


@pytest.mark.parametrize("sigma", [1, 4, 10, 30])
def test_noise_is_empty(sigma: float):
    noise = np.random.default_rng(0).normal(190, sigma, (300, 300))
    assert is_empty(noise.clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("box", [(100, 100, 112, 112), (100, 100, 125, 104), (3, 3, 9, 9), (0, 0, 279, 140)])
def test_dots_dashes_and_blocks_do_not_crash(box: tuple[int, int, int, int]):
    image = Image.new("L", (280, 280), 255)
    ImageDraw.Draw(image).ellipse(box, fill=0)
    assert to_mnist(image).max() == 255


def test_any_pixels_give_a_digit_or_an_empty_pad():
    rng = np.random.default_rng(0)
    for _ in range(60):
        height, width = rng.integers(1, 90, 2)
        levels = rng.integers(2, 257)
        pixels = (rng.integers(0, levels, (height, width, 3)) * 255 // (levels - 1)).astype(np.uint8)
        if not is_empty(pixels):
            assert to_mnist(pixels).max() == 255


@pytest.mark.parametrize(("pen", "size"), [(1, 28), (1, 200), (3, 400)])
def test_a_thin_pen_leaves_strokes_as_wide_as_usual(pen: int, size: int) -> None:
    """Also where the drawing already has MNIST's size, as one made in a paint program at 28 x 28."""
    picture = Image.new("L", (size, size), 255)
    unit = size / 28
    ImageDraw.Draw(picture).line([(9 * unit, 4 * unit), (18 * unit, 4 * unit), (12 * unit, 23 * unit)], 90, pen)
    digit = to_mnist(picture).astype(float) / 255
    widths = digit[8:20].sum(axis=1)  # the slanted leg, row by row
    assert 1.5 < widths.mean() < 3.5
