"""``gallery`` and ``vit_demo.gallery``: a page for each result, an index, no request, bounded in bytes."""

import base64
import gzip
import html
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main, output
from vit_demo.errors import InputError
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

MAX_BYTES = 300_000


def value(path):
    """The result that a page shows."""
    [packed] = re.findall(r'id="bundle">([^<]+)<', path.read_text(encoding="utf-8"))
    return json.loads(gzip.decompress(base64.b64decode(packed)))["value"]


def links(path):
    return re.findall(r'<a href="([^"]+)"', path.read_text(encoding="utf-8"))


def test_a_page_for_each_photo(tmp_path, capsys):
    photos = sorted({photo.path for photo in EXAMPLE_PHOTOS.values() if "vit_demo" in str(photo.path)})[:2]
    assert main(["gallery", *map(str, photos), "--patch-size", "12", "--out", str(tmp_path)]) == 0
    index = tmp_path / "index.html"
    assert capsys.readouterr().out == f"{index}\n"
    pages = [tmp_path / link for link in links(index)]
    assert len(pages) == 2 and set(pages) == set((tmp_path / "results").iterdir())
    for photo, page in zip(photos, pages, strict=True):
        assert page.name == f"{photo.stem}-photos-tiny-12.html" and page.stat().st_size <= MAX_BYTES
        [label, _] = vit_demo.explore(photo, "photos-tiny", patch_size=12).top(1)[0]
        assert value(page)["predictions"]["labels"][0] == label
        assert f"<b>{label} " in index.read_text(encoding="utf-8")


def test_each_model_and_size_has_a_page_that_links_the_others(seven, tmp_path):
    site = tmp_path / "site"
    command = ["gallery", str(seven), "--preset", "digits-small,digits-tiny", "--patch-size", "4,7"]
    assert main([*command, "--out", str(site), "--title", "A <seven>"]) == 0
    index = site / "index.html"
    text = index.read_text(encoding="utf-8")
    assert "<title>A &lt;seven&gt;</title>" in text and str(tmp_path) not in text
    names = [f"seven-{preset}-{size}.html" for preset in ("digits-small", "digits-tiny") for size in (4, 7)]
    assert links(index) == [f"results/{name}" for name in names]
    for name in names:
        page = site / "results" / name
        assert links(page)[:5] == ["../index.html", *names]
        [here] = re.findall(r'<a href="([^"]+)" aria-current="page">', page.read_text(encoding="utf-8"))
        shown, (_, preset, size) = value(page), re.fullmatch(r"(seven)-(.+)-(\d)\.html", name).groups()
        ex = vit_demo.explore(seven, preset, patch_size=int(size))
        assert here == name and shown["grid"] == list(ex.grid)
        probabilities = np.frombuffer(base64.b64decode(shown["predictions"]["probabilities"]), np.float32)
        assert probabilities[0] == pytest.approx(ex.top(1)[0][1], abs=1e-6)
        assert f"<title>seven.png, {preset}, patches of {size} px</title>" in page.read_text(encoding="utf-8")


def test_the_index_shows_the_evidence_for_the_predicted_class(seven, tmp_path):
    ex = vit_demo.explore(seven, "digits-tiny", patch_size=7)
    index = vit_demo.gallery({"seven": ex}, tmp_path)
    pictures = re.findall(r'src="data:image/webp;base64,([^"]+)"', index.read_text(encoding="utf-8"))
    (tmp_path / "shown.webp").write_bytes(base64.b64decode(pictures[1]))
    shown = np.asarray(Image.open(tmp_path / "shown.webp").convert("RGB"), np.float32)
    expected = np.asarray(ex.overlay(ex.heatmap("libra_fullgrad"), method="libra_fullgrad", size=448), np.float32)
    other = np.asarray(ex.overlay(ex.heatmap("libra_fullgrad", "1"), method="libra_fullgrad", size=448), np.float32)
    assert abs(shown - expected).mean() < min(4, abs(shown - other).mean())  # WebP is lossy


def test_pictures_of_one_name_keep_their_pages_and_no_name_is_markup(tmp_path):
    exs = [vit_demo.explore(example_picture(digit), "digits-tiny", patch_size=7) for digit in (1, 7)]
    names = ["a/<b>BUNDLE ABOVE&.png", "b/<b>BUNDLE ABOVE&.png"]
    index = vit_demo.gallery(dict(zip(names, exs, strict=True)), tmp_path)
    pages = [tmp_path / link for link in links(index)]
    assert len(set(pages)) == 2 and all(page.parent == tmp_path / "results" for page in pages)
    for page, ex in zip(pages, exs, strict=True):
        text = page.read_text(encoding="utf-8")
        assert html.escape("<b>BUNDLE ABOVE&.png") in text and "<b>BUNDLE" not in text
        assert value(page)["predictions"]["labels"][0] == ex.top(1)[0][0]


def test_a_picture_that_cannot_be_used_is_reported_and_left_out(seven, tmp_path, capsys):
    (tmp_path / "broken.png").write_bytes(b"nothing")
    command = ["gallery", str(tmp_path / "broken.png"), str(seven), "--preset", "digits-tiny", "--patch-size", "7"]
    assert main([*command, "--out", str(tmp_path / "site")]) == 2
    assert "broken.png: " in capsys.readouterr().err
    assert links(tmp_path / "site" / "index.html") == ["results/seven-digits-tiny-7.html"]
    assert main(["gallery", str(tmp_path / "broken.png"), "--out", str(tmp_path / "none")]) == 2
    assert "A gallery needs at least one result" in capsys.readouterr().err


def test_the_progress_bar_counts_pictures_also_those_left_out(seven, tmp_path, monkeypatch):
    (tmp_path / "broken.png").write_bytes(b"nothing")
    terminal, bars = io.StringIO(), []
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)

    def kept_bar(total, make=output.progress_bar):
        bars.append(make(total))
        return bars[0]

    monkeypatch.setattr(output, "progress_bar", kept_bar)
    command = ["gallery", str(tmp_path / "broken.png"), str(seven), "--preset", "digits-tiny", "--patch-size", "7"]
    main([*command, "--out", str(tmp_path / "site")])
    assert [(bar.n, bar.total) for bar in bars] == [(2, 2)]


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "results").write_text("a file")
    ex = vit_demo.explore(example_picture(7), "digits-tiny", patch_size=7)
    with pytest.raises(InputError, match=r"cannot be written .*: choose another folder"):
        vit_demo.gallery({"seven": ex}, tmp_path)


def test_a_network_without_classes_shows_attention(tmp_path):
    import timm

    network = timm.create_model("test_vit", num_classes=0)
    index = vit_demo.gallery({"cat": vit_demo.explore(EXAMPLE_PHOTOS["cat"].path, network)}, tmp_path)
    text = index.read_text(encoding="utf-8")
    assert "No classes" in text and "attention through all blocks (rollout)" in text
