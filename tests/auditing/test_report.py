"""The report: pages that open from a disk, link to each other, and hold nothing that a file's name could run."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.auditing import groups, report
from vit_demo.cli import main
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS


class Page(HTMLParser):
    """The links, sources, tags and text of a page."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.links, self.text = [], [], ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data):
        self.text += data


def check_links(folder):
    pages = list(folder.rglob("*.html"))
    for path in pages:
        page = Page(path)
        assert not {tag for tag, _ in page.tags} & {"script", "iframe", "link", "object", "form"}
        assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
        policy = next(one["content"] for tag, one in page.tags if tag == "meta" and "http-equiv" in one)
        assert policy.startswith("default-src 'none'")
        for link in page.links:
            outside = link.startswith(("data:image/webp;base64,", "#", "http://127.0.0.1:7860/#"))
            assert outside or (path.parent / link).is_file(), link
    return pages


@pytest.fixture
def photos(tmp_path):
    for name in ("lion", "cat", "german-shepherd"):
        folder = tmp_path / "photos" / {"cat": "tabby cat", "german-shepherd": "German_shepherd"}.get(name, name)
        folder.mkdir(parents=True)
        Image.open(EXAMPLE_PHOTOS[name].path).convert("RGB").resize((160, 120)).save(folder / f"{name}.png")
    other = tmp_path / "photos" / "lion" / "<img src=x onerror=alert(1)>\x07.png"
    Image.effect_noise((160, 120), 80).convert("RGB").save(other)
    return tmp_path / "photos"


def test_the_command_writes_a_site(photos, tmp_path, capsys):
    (photos / "lion" / "damaged.png").write_bytes(b"no picture")
    site = tmp_path / "site"
    assert main(["audit", "photos-tiny", "--pictures", str(photos), "--out", str(site)]) == 2, "one cannot be used"
    printed = capsys.readouterr().out
    assert (
        "No group is suspicious" in printed and "lion/damaged.png: " in printed and str(site / "index.html") in printed
    )
    assert "\x07" not in printed
    pages = check_links(site)
    assert len(pages) == 1 + 3 * 3 + 4, "the first; three orders of three classes; a page for each picture"
    index = Page(site / "index.html")
    assert "of 4 pictures are right" in index.text and "Could not be used: 1" in index.text
    lions = Page(site / "classes" / "1-0.html")
    files = [attributes["alt"] for tag, attributes in lions.tags if tag == "img"]
    table = vit_demo.audit("photos-tiny", photos).table
    wrong = {row["file"]: row["right"] for row in table}
    expected = sorted((name for name in wrong if name.startswith("lion/")), key=lambda name: wrong[name])
    assert files == [name.removeprefix("lion/") for name in expected]
    assert "<img src=x onerror" in lions.text, "as text"
    assert (site / "table.csv").read_text(encoding="utf-8").count("\n") == 5
    assert main(["audit", "photos-tiny", "--pictures", str(photos), "--out", str(site), "--json"]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert printed["pictures"] == 4 and printed["problems"][0][0] == "lion/damaged.png"


def test_groups_and_masks_are_told_in_sentences(explainer, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "LEAST_PICTURES", 3)
    found = vit_demo.audit(
        explainer, folder, masks={f"{row:02}": [0, 0, 8, 16] for row in range(12)}, faithfulness=True
    )
    every = range(len(found.table))
    eye = np.eye(4, dtype=np.float32)
    group = groups.Group(
        label="<b>cat", files=["a"], accuracy=1.0, why="Reads <i>the corner.", mean_map=eye, difference=-eye,
        is_suspicious=True, indices=np.array(every), suspicion=11.0,
    )  # fmt: skip
    found.groups = [group]
    index = Page(found.to_html(tmp_path / "site"))
    check_links(tmp_path / "site")
    assert "Suspicious: <b>cat, 1 pictures" in index.text and "Reads <i>the corner." in index.text
    assert re.search(r"The strongest patch is on the object in \d+ of 12 pictures", index.text)
    missed = sum(not row["right"] for row in found.table)
    assert sum(tag == "img" for tag, _ in index.tags) == 2 + report.TYPICAL + missed
    one = Page(tmp_path / "site" / "pictures" / "0.html")
    assert "of it lies on the object" in one.text and "Insertion minus deletion" in one.text
    wrong = next(n for n in every if not found.table[n]["right"])
    shown = Page(tmp_path / "site" / "pictures" / f"{wrong}.html").text
    assert f"for {found.table[wrong]['prediction']} rather than {found.table[wrong]['truth']}" in shown


def test_pictures_in_memory_and_without_truth(tmp_path):
    site = vit_demo.audit("digits-tiny", [example_picture(n) for n in range(3)]).to_html(tmp_path / "site")
    check_links(site.parent)
    assert "are right" not in Page(site).text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["digits-tiny", "--pictures", "nowhere", "--out", "site"], "nowhere cannot be read"),
        (["nothing", "--pictures", "photos", "--out", "site"], "nothing"),
        (["photos-tiny", "--pictures", "photos", "--out", "photos/lion/lion.png"], "cannot be used"),
        (["photos-tiny", "--pictures", "photos", "--out", "site", "--masks", "nowhere"], "holds no masks"),
        (["digits-tiny", "--pictures", "photos", "--out", "site"], "German_shepherd/german-shepherd.png: No digit"),
    ],
)
def test_bad_input_is_one_line(photos, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", *arguments]) == 2
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1 and words in printed[0]
