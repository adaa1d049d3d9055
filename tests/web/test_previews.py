"""Links to examples: what a preview reads of each, and that nothing but an example has one."""

import io
import re
import urllib.error
import urllib.request

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


@pytest.mark.parametrize("name", ["digit-10", "digit-", "test-1", "upload", "lion.webp", "%22%3Escript", "a" * 200])
@pytest.mark.parametrize("end", ["", ".jpg"])
def test_nothing_else_has_a_preview(page, name: str, end: str):
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(f"{page.local_url.rstrip('/')}{PATH}/{name}{end}")
    assert refused.value.code == 404 and b"script" not in refused.value.read()
