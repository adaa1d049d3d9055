"""A result as HTML for a notebook: complete, bounded, without Gradio. tests/browser opens it in a browser."""

import base64
import gzip
import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import vit_demo
from vit_demo.web import notebook
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.frontend.assets import FOLDER, OFFLINE_VIEWS, VIEWS, stage_styles
from vit_demo.web.notebook import MAX_BYTES, document


def unpacked(html):
    [packed] = re.findall(r'id="bundle">([^<]+)<', html)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def floats(text):
    return np.frombuffer(base64.b64decode(text), np.float32)


@pytest.fixture(scope="module")
def drawing():
    return example_picture(7)


def test_views_that_need_the_server_are_left_out():
    assert {"blocks", "predictions"} <= set(OFFLINE_VIEWS) < set(VIEWS)
    assert sorted(VIEWS) == sorted(path.parent.name for path in FOLDER.glob("stage/views/*/view.js"))
    bundled = {view for view in VIEWS if f'modules["stage/views/{view}/view.js"] =' in notebook.script()}
    assert bundled == set(OFFLINE_VIEWS)
    assert ".findings {" in (FOLDER / "stage" / "views" / "faithfulness" / "view.css").read_text()
    styles = stage_styles(OFFLINE_VIEWS)
    assert ".findings {" not in styles and ".cells" in styles


def test_every_block_of_the_default_digit_fits(drawing):
    result = vit_demo.explore(drawing, "digits-small", patch_size=4)
    html, page = result._repr_html_(), document(result)
    assert len(html.encode()) <= MAX_BYTES == 360_000
    assert list(unpacked(page)["value"]["trace"]) == ["5", "4", "3", "2", "1", "0"]
    assert unescape(html).count(page) == 1, "the same each time, for notebooks under version control"


def test_a_larger_result_has_the_last_blocks_only(drawing):
    result = vit_demo.explore(drawing, "digits-small", patch_size=2)
    html = result._repr_html_()
    assert len(html.encode()) <= MAX_BYTES
    photo = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, "photos-tiny", patch_size=10)._repr_html_()
    assert len(photo.encode()) <= MAX_BYTES
    blocks = list(unpacked(unescape(html))["value"]["trace"])
    assert 0 < len(blocks) < 6 and blocks == ["5", "4", "3", "2", "1"][: len(blocks)]


def test_replies_are_those_of_the_server(drawing):
    result = vit_demo.explore(drawing, "digits-tiny", patch_size=7)
    replies = unpacked(document(result))["replies"]
    label = result.labels.index(result.top(2)[1][0])
    key = f'[["kind","map"],["label",{label}],["method","relevance"]]'
    assert np.array_equal(floats(replies[key]["result"]["map"]), result.relevance(label).ravel())
    key = '[["block",2],["kind","map"],["method","norm_attention"]]'
    values = result.heatmap("norm_attention", block=2)
    assert np.array_equal(floats(replies[key]["result"]["map"]), values.ravel())
    assert "<p>" in replies['[["kind","method_docs"],["method","rollout"]]']["result"]["html"]


def test_the_frame_can_neither_reach_the_notebook_nor_the_network(drawing):
    html = vit_demo.explore(drawing, "digits-tiny", patch_size=7)._repr_html_()
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, dict(attributes)))
    parser.feed(html)
    [(tag, attributes)] = tags
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', attributes["srcdoc"])[1]
    assert policy.startswith("default-src 'none';") and "http" not in policy and "*" not in policy


def test_a_result_in_text_is_one_line(drawing):
    result = vit_demo.explore(drawing, "digits-tiny", patch_size=7)
    assert repr(result).startswith("<Exploration: digits-tiny, patches of 7 px, grid (4, 4), 7 ")
