"""Links to examples: what a preview reads of each, and that nothing but an example has one."""

import io
import re
import urllib.error
import urllib.request
from base64 import urlsafe_b64encode

import pytest
from PIL import Image

from vit_demo.web.frontend.previews import NAMES, PATH, SIZE


def fetch(url: str) -> tuple[bytes, str]:
    with urllib.request.urlopen(url) as reply:
        return reply.read(), reply.headers["content-type"]


@pytest.mark.parametrize("name", NAMES)
def test_a_preview_shows_the_example_of_the_link(page, name: str):
    html = fetch(f"{page.local_url.rstrip('/')}{PATH}/{name}?language=de")[0].decode()
    [image] = re.findall(r'property="og:image" content="([^"]*)"', html)
    assert image == f"{page.local_url.rstrip('/')}{PATH}/{name}.jpg", "previews want a whole address"
    content, kind = fetch(image)
    shown = Image.open(io.BytesIO(content))
    assert kind == "image/jpeg" and shown.size == SIZE and len(content) < 150_000
    assert 'location.replace("../../../" + location.search + location.hash)' in html


def test_each_example_has_a_picture_of_its_own(page):
    assert len({fetch(f"{page.local_url.rstrip('/')}{PATH}/{name}.jpg")[0] for name in NAMES}) == len(NAMES) == 19


def strokes(*drawing: tuple[int, list[tuple[float, float]]]) -> str:
    """A name with (pen, points) of strokes: 4 bits for the pen, 12 for how many points and for each number."""
    bits = "".join(
        f"{pen:04b}{len(points):012b}" + "".join(f"{round(4095 * value):012b}" for point in points for value in point)
        for pen, points in drawing
    )
    return "strokes-" + urlsafe_b64encode(int(bits, 2).to_bytes(len(bits) // 8)).decode().rstrip("=")


def test_a_preview_shows_the_drawing_of_the_link(page):
    drawing = strokes((2, [(0.2, 0.5), (0.8, 0.5)]), (3, [(0.5, 0.3), (0.5, 0.7)]))
    html, _ = fetch(f"{page.local_url.rstrip('/')}{PATH}/{drawing}")
    assert f"{PATH}/{drawing}.jpg".encode() in html
    shown = Image.open(io.BytesIO(fetch(f"{page.local_url.rstrip('/')}{PATH}/{drawing}.jpg")[0])).convert("L")
    left = (SIZE[0] - SIZE[1]) // 2

    def grey(x: float, y: float) -> int:
        return shown.getpixel((left + round(x * SIZE[1]), round(y * SIZE[1])))

    for place in ((0.2, 0.48), (0.35, 0.53), (0.8, 0.47)):
        assert grey(*place) < 40, place
    for place in ((0.53, 0.53), (0.2, 0.6), (0.35, 0.4), (0.9, 0.55)):
        assert grey(*place) > 240, place


@pytest.mark.parametrize(
    "name",
    [
        *("strokes-", "strokes-IAEAAA", "strokes-!AEAAAAA", "strokes-AAAAAAAA"),
        strokes((4, [(0, 0)])),
        strokes((1, [(0, 0)] * 199)) + "A" * 12,
        strokes((1, [(0, 0)] * 200)),
        strokes((1, [(0, 0), (1, 1)]))[:-2],
    ],
)
def test_a_drawing_that_is_none_or_too_long_has_no_preview(page, name: str):
    test_nothing_else_has_a_preview(page, name, "")


@pytest.mark.parametrize("name", ["digit-10", "digit-", "test-1", "upload", "lion.webp", "%22%3Escript", "a" * 200])
@pytest.mark.parametrize("end", ["", ".jpg"])
def test_nothing_else_has_a_preview(page, name: str, end: str):
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(f"{page.local_url.rstrip('/')}{PATH}/{name}{end}")
    assert refused.value.code == 404 and b"script" not in refused.value.read()
