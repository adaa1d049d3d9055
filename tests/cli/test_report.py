"""The HTML report holds everything, and nothing in it is run or loaded."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
from PIL import Image

import vit_demo
from vit_demo.cli import main

from ..percentages import percentage

NAME = "a<script>alert(1)</script>&\"'.png"


class Page(HTMLParser):
    """Collects tags and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_report(seven, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    named = folder / NAME.replace("/", "_")
    named.write_bytes(seven.read_bytes())
    (folder / "z.png").write_bytes(b"no picture")
    command = ["explain", str(folder), "--preset", "digits-tiny", "--method", "rollout,relevance"]
    assert main([*command, "--html", "report/r.html"]) == 2
    assert capsys.readouterr().out.splitlines()[-1] == "report/r.html" and not (tmp_path / "out").exists()

    text = (tmp_path / "report" / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    content = "".join(page.text)
    assert "2 pictures explained" in content
    assert str(named) in content, "the name is text, not HTML"
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "form"}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    addresses = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert addresses and all(address.startswith(("data:image/webp;base64,", "#p")) for address in addresses)
    assert "http:" not in text and "https:" not in text and "url(" not in text and "@import" not in text

    expected = vit_demo.explore(seven, "digits-tiny")
    assert all(label in content and percentage(share) in content for label, share in expected.top(5))
    assert "for 7" in content and f"largest value {expected.relevance().max():.3g}" in content
    pictures = [address for address in addresses if address.startswith("data:")]
    assert len(pictures) == 3, "input and two maps"
    decoded = [Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))).convert("RGB") for address in pictures]
    for picture, method in zip(decoded[1:], ("rollout", "relevance"), strict=True):
        overlay = np.asarray(expected.overlay(expected.heatmap(method)), int)
        assert np.abs(np.asarray(picture, int) - overlay).mean() < 8, "WebP loses a little"
    assert "z.png" in content and re.search(r'class="failure">[^<]*picture', text)


def test_a_wide_photo_keeps_its_shape_within_the_side_of_a_figure(photo, tmp_path):
    Image.open(photo).convert("RGB").resize((300, 150)).save(tmp_path / "wide.png")
    command = ["explain", str(tmp_path / "wide.png"), "--preset", "photos-tiny", "--fit", "keep", "--method", "rollout"]
    assert main([*command, "--html", str(tmp_path / "r.html")]) == 0
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "1 picture explained" in page.text
    shown = [attributes for tag, attributes in page.tags if tag == "img"]
    assert [(int(one["width"]), int(one["height"])) for one in shown] == [(224, 112)] * 2, "input and map"
