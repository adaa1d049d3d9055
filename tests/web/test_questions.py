"""What the stage asks of a result, against the result itself."""

import base64

import numpy as np
import pytest

from vit_demo.inference.engine import explorer_on
from vit_demo.methods import METHODS
from vit_demo.web import making
from vit_demo.web.components.pad import example_picture
from vit_demo.web.making import HEADINGS, how_it_is_made
from vit_demo.web.questions import answer


@pytest.fixture(scope="module")
def result():
    return explorer_on().explore(example_picture(3), "digits-tiny", 7)


def quiet(done, total):
    pass


def ask(result, about, **details):
    return answer({"about": about, "key": result.key, **details}, quiet)


def map_of(result, **view):
    sent = base64.b64decode(ask(result, "map", **view)["map"])
    return np.frombuffer(sent, "<f4").reshape(result.grid)


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_the_packages_own_to_the_last_bit(result, method):
    label = 8 if METHODS[method].class_specific else None
    np.testing.assert_array_equal(map_of(result, method=method, label=label), result.heatmap(method, label))


def test_block_head_patch_and_direction_count_where_they_matter(result):
    view = {"method": "attention", "block": 2, "head": 1, "query": 6, "direction": "to"}
    np.testing.assert_array_equal(map_of(result, **view), result.attention(2, 1, (1, 2), "to"))
    view = {"method": "attention", "block": 2, "head": -1, "query": None, "direction": "from"}
    np.testing.assert_array_equal(map_of(result, **view), result.attention(2))
    np.testing.assert_array_equal(map_of(result, method="value_weighted", block=1), result.value_weighted(1))


def test_a_test_is_of_the_map_and_the_class_that_were_asked_for(result):
    view = {"method": "attention", "block": 0, "head": 2, "query": None, "direction": "from"}
    found = ask(result, "test", label=8, **view)
    wanted = result.faithfulness(result.attention(0, 2), label=8)
    assert found["fractions"] == wanted.fractions.tolist()
    for side, curve, area, chance in (
        ("deletion", wanted.deletion, wanted.deletion_area, wanted.random_deletion_area),
        ("insertion", wanted.insertion, wanted.insertion_area, wanted.random_insertion_area),
    ):
        assert found[side]["curve"] == pytest.approx(curve.tolist(), abs=1e-6)
        assert found[side]["area"] == pytest.approx(area) and found[side]["random_area"] == pytest.approx(chance)
        assert len(found[side]["random"]) == 5 and 0 <= found[side]["beaten"] <= 5
    assert ask(result, "forgetting", method="attnlrp", label=8)["alike"] == result.randomisation("attnlrp", 8)


def test_the_lens_gives_each_depth_its_first_answer(result):
    depths = ask(result, "lens")["depths"]
    assert [(depth["label"], depth["probability"]) for depth in depths] == [depth[0] for depth in result.lens()]


def test_what_is_left_without_patches_can_be_asked_about_too(result):
    sent = ask(result, "without", patches=[5, 6])
    left = result.without([(1, 1), (1, 2)])
    assert sent["key"] == left.key and sent["dropped"] == [5, 6]
    assert sent["top"][0]["probability"] == pytest.approx(left.top(1)[0][1])
    np.testing.assert_array_equal(map_of(explorer_on().recall(left.key), method="relevance"), left.relevance())


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"about": "weather"}, "no question 'weather'"),
        ({"about": "map", "key": "gone", "method": "rollout"}, "draw or choose again"),
        ({"about": "map", "method": "magic"}, "no method 'magic'"),
        ({"about": "map", "method": "relevance", "label": 10}, "no class 10"),
        ({"about": "without", "patches": [16]}, "no patch"),
        ({"about": "without", "patches": list(range(16))}, "At least one patch"),
        ({"about": "making", "method": "magic"}, "no method 'magic'"),
    ],
)
def test_what_cannot_be_answered_is_said(result, question, said):
    with pytest.raises(ValueError, match=said):
        answer({"key": result.key, **question}, quiet)


def test_the_docs_explain_every_method_with_formula_and_source():
    assert set(HEADINGS) == set(METHODS)
    for method in METHODS:
        html = " ".join(how_it_is_made(method).split())
        assert "<code>" in html and ("https://arxiv.org/abs/" in html or "This package's own" in html)
        specific = "Depends on the class." if METHODS[method].class_specific else "Does not depend on the class."
        assert specific in html
        assert "`" not in html and "](" not in html and 500 < len(html) < 2500


def test_docs_become_html_and_nothing_else_does(monkeypatch):
    text = {"Relevance": "A *star*, a **bold** `a*b* < c`\n<script>. [x](https://a.b/c_d)", making.NOTATION: "N."}
    monkeypatch.setattr(making, "sections", lambda: text)
    html = how_it_is_made("relevance")
    assert html.startswith("<p>A <i>star</i>, a <b>bold</b> <code>a*b* &lt; c</code>\n&lt;script&gt;. ")
    assert '<a href="https://a.b/c_d" target="_blank" rel="noopener">x</a>' in html


def test_without_docs_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(making, "DOCS", tmp_path / "none.md")
    making.sections.cache_clear()
    with pytest.raises(ValueError, match=r"came without docs/explanations\.md"):
        how_it_is_made("rollout")
    making.sections.cache_clear()
