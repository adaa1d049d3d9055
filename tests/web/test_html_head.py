"""The head of the page as it is served, which is all that a link preview reads."""

import io
import re
import urllib.request
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from PIL import Image

from vit_demo.web.frontend.constants import COLOURS
from vit_demo.web.frontend.html_head import DESCRIPTION, NO_API_INFO, TITLE
from vit_demo.web.page import footer


class Head(HTMLParser):
    """Collects what a preview reads."""

    def __init__(self) -> None:
        super().__init__()
        self.metas: list[tuple[str, str]] = []
        self.links: dict[str, str] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "meta" and ("property" in found or "name" in found):
            self.metas.append((found.get("property") or found["name"], found.get("content", "")))
        elif tag == "link":
            self.links.setdefault(found.get("rel", ""), found.get("href", ""))


@pytest.fixture
def address(page) -> str:
    return page.local_url


def fetch(url: str) -> tuple[bytes, str]:
    with urllib.request.urlopen(url) as reply:
        return reply.read(), reply.headers["content-type"]


def test_previews_read_our_title_description_and_picture_and_nothing_of_gradios(address: str) -> None:
    html = fetch(address)[0].decode()
    head = Head()
    head.feed(html[: html.index("</head>")])
    named = dict(head.metas)
    previews = [name for name, _ in head.metas if name.startswith(("og:", "twitter:"))]
    assert len(previews) == len(set(previews)), "each once, since previews take the first"
    assert named["og:title"] == TITLE and named["og:description"] == named["description"] == DESCRIPTION
    assert not re.search("gradio-app|@gradio|Gradio", " ".join(value for _, value in head.metas))
    assert html.index("<title>") < 4000 and html.index("charset") < 1024

    picture, kind = fetch(named["og:image"])
    assert named["og:image"].startswith(address) and kind == "image/jpeg"
    assert Image.open(io.BytesIO(picture)).size == (1200, 630) and len(picture) < 150_000
    [script] = re.findall(r'<script type="module" src="\./(\S+/page\.js)">', html)
    assert fetch(address + script)[1].startswith("text/javascript"), "fetched while Gradio is still starting"
    icon, kind = fetch(address + head.links["icon"].removeprefix("./"))
    assert kind == "image/svg+xml" and ElementTree.fromstring(icon).tag.endswith("svg")


def test_the_theme_has_the_colours_of_the_page_and_loads_no_font(address: str) -> None:
    css = fetch(f"{address}theme.css")[0].decode()
    light, dark = css.split(".dark", 1)
    for name, (by_day, by_night) in COLOURS.items():
        variable = f"--{name.replace('_', '-')}"
        assert f"{variable}: {by_day};" in light
        assert by_night == by_day or f"{variable}: {by_night};" in dark
    assert "@font-face" not in css and "@import" not in css


def test_the_page_does_not_hold_the_description_of_the_api(address: str) -> None:
    html = fetch(address)[0].decode()
    assert "window.gradio_api_info" in html and NO_API_INFO in html and "parameter_has_default" not in html
    assert b"parameter_has_default" in fetch(f"{address}gradio_api/info")[0]


@pytest.mark.parametrize(
    ("environment", "link"),
    [
        ({}, None),
        ({"VIT_DEMO_SOURCE_URL": "https://git.example/vit?a=1&b=2"}, "https://git.example/vit?a=1&amp;b=2"),
        ({"VIT_DEMO_SOURCE_URL": "javascript:alert(1)"}, None),
        ({"SPACE_ID": "someone/vit"}, "https://huggingface.co/spaces/someone/vit/tree/main"),
    ],
)
def test_the_last_line_links_to_the_source_where_its_address_is_known(monkeypatch, environment, link) -> None:
    for name in ("VIT_DEMO_SOURCE_URL", "SPACE_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    html = footer()
    assert (f'href="{link}"' in html) if link else ("Source" not in html)
