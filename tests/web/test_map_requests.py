"""What the stage asks of a result, against the result itself."""

import asyncio
import base64
import threading
import time
from dataclasses import replace
from functools import wraps

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo import methods
from vit_demo.images import to_mnist
from vit_demo.inference.engine import get_engine, reset_engines
from vit_demo.inference.inputs import Source
from vit_demo.inference.jobs import report
from vit_demo.methods import METHODS
from vit_demo.web import map_requests, method_docs
from vit_demo.web.components.pad import example_picture
from vit_demo.web.method_docs import HEADINGS, method_html
from vit_demo.web.payload import block_payload, payload
from vit_demo.web.requests import ResultRequest, upload_source
from vit_demo.weights import PRESETS

from ..asynchronous import run


@pytest.fixture(scope="module")
def request_of():
    digit = to_mnist(example_picture(3))
    return ResultRequest(Source(("digit", "three"), lambda: digit), "digits-tiny", 7, "crop")


@pytest.fixture(scope="module")
def result(request_of):
    return get_engine().explore_source(request_of.source, PRESETS["digits-tiny"], 7)


@pytest.fixture(scope="module")
def source(result, request_of):
    return payload(result, request_of)["source"]


def answer(sent):
    """Asks until there is an answer, as the page does."""
    for _ in range(500):
        said = run(map_requests.ask(sent))
        if "done" not in said:
            return said
    raise AssertionError("no answer")


def ask(source, about, **details):
    return answer({"about": about, "source": source, **details})["answer"]


def map_of(source, **view):
    sent = base64.b64decode(ask(source, "map", **view)["map"])
    return np.frombuffer(sent, "<f4").reshape(4, 4)


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_the_packages_own_to_the_last_bit(result, source, method):
    label = 8 if METHODS[method].class_specific else None
    np.testing.assert_array_equal(map_of(source, method=method, label=label), result.heatmap(method, label))


def test_block_head_patch_and_direction_count_where_they_matter(result, source):
    view = {"method": "attention", "block": 2, "head": 1, "query": 6, "direction": "to"}
    np.testing.assert_array_equal(map_of(source, **view), result.attention(2, 1, (1, 2), "to"))
    view = {"method": "attention", "block": 2, "head": -1, "query": None, "direction": "from"}
    np.testing.assert_array_equal(map_of(source, **view), result.attention(2))
    np.testing.assert_array_equal(map_of(source, method="value_weighted", block=1), result.value_weighted(1))


def test_a_test_is_of_the_map_and_the_class_that_were_asked_for(result, source):
    view = {"method": "attention", "block": 0, "head": 2, "query": None, "direction": "from"}
    found = ask(source, "test", label=8, **view)
    wanted = result.faithfulness(result.attention(0, 2), label=8)
    assert found["fractions"] == wanted.fractions.tolist()
    for side, curve, area, chance in (
        ("deletion", wanted.deletion, wanted.deletion_area, wanted.random_deletion_area),
        ("insertion", wanted.insertion, wanted.insertion_area, wanted.random_insertion_area),
    ):
        assert found[side]["curve"] == pytest.approx(curve.tolist(), abs=1e-6)
        assert found[side]["area"] == pytest.approx(area) and found[side]["random_area"] == pytest.approx(chance)
        assert len(found[side]["random"]) == 5 and 0 <= found[side]["beaten"] <= 5
    assert ask(source, "randomization", method="attnlrp", label=8)["correlations"] == result.randomization("attnlrp", 8)


def test_the_lens_gives_each_depth_its_first_answer(result, source):
    depths = ask(source, "logit_lens")["depths"]
    assert [(depth["label"], depth["probability"]) for depth in depths] == [depth[0] for depth in result.logit_lens()]


def test_what_is_left_without_patches_can_be_asked_about_too(result, source):
    sent = ask({**source, "dropped": [5, 6]}, "result")
    left = result.drop_patches([(1, 1), (1, 2)])
    assert sent["dropped"] == sent["source"]["dropped"] == [5, 6]
    assert sent["top"][0]["probability"] == pytest.approx(left.top(1)[0][1])
    np.testing.assert_array_equal(map_of(sent["source"], method="relevance"), left.relevance())


def test_another_block_is_that_of_the_result(result, source):
    assert ask(source, "block", block=1) == block_payload(result, 1)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"about": "weather"}, "no request 'weather'"),
        ({"about": "map", "method": "magic"}, "no method 'magic'"),
        ({"about": "map", "method": ["rollout"]}, "method is not a short text"),
        ({"about": "map", "method": "relevance", "label": 10}, "no class 10"),
        ({"about": "map", "method": "attention", "block": 9}, "no block 9"),
        ({"about": "map", "method": "attention", "query": 99}, "no patch"),
        ({"about": "block", "block": 6}, "no block 6"),
        ({"about": "result", "dropped": [16]}, "no patch 16"),
        ({"about": "result", "dropped": list(range(16))}, "At least one patch"),
        ({"about": "result", "dropped": "all"}, "not a list of numbers"),
        ({"about": "result", "patch_size": 5}, "no patch size 5"),
        ({"about": "result", "patch_size": None}, "not a whole number"),
        ({"about": "result", "preset": "/etc"}, "no preset '/etc'"),
        ({"about": "result", "fit": "wide"}, "no fit 'wide'"),
        ({"about": "result", "digit": "data:image/png;base64,AAAA"}, "drawing cannot be read"),
        ({"about": "result", "digit": {"path": "/etc/passwd"}}, "not a digit"),
        ({"about": "result", "digit": None, "upload": "/etc/passwd"}, "not on the server"),
        ({"about": "method_docs", "method": "magic"}, "no method 'magic'"),
    ],
)
def test_what_cannot_be_answered_is_said_and_the_next_request_works(source, sent, said):
    fields = ("digit", "upload", "preset", "patch_size", "fit", "dropped")
    changed = {**source, **{name: value for name, value in sent.items() if name in fields}}
    assert said in answer({"source": changed, **{n: v for n, v in sent.items() if n not in fields}})["error"]
    assert len(ask(source, "logit_lens")["depths"]) == 7


@pytest.mark.parametrize("sent", [None, 3, "map", [], {}, {"about": "map"}, {"about": "result", "source": 3}])
def test_nonsense_is_refused_in_words(sent):
    assert answer(sent)["error"].endswith(".")


def test_nothing_depends_on_what_is_cached(result, source):
    """The page's request says all that it takes: an engine that has never heard of the picture answers it, too."""
    wanted = map_of(source, method="relevance", label=5)
    map_requests._answers.clear()
    map_requests._maps.clear()
    reset_engines()
    np.testing.assert_array_equal(map_of(source, method="relevance", label=5), wanted)


def test_a_photo_is_named_by_its_upload_and_asked_about_by_any_process(upload):
    photo = Image.effect_noise((80, 60), 90).convert("RGB")
    request = ResultRequest(upload_source(upload(photo)), "photos-tiny", 20, "keep")
    ex = get_engine().explore_source(request.source, PRESETS["photos-tiny"], 20, "keep")
    sent = payload(ex, request)["source"]
    reset_engines()
    found = np.frombuffer(base64.b64decode(ask(sent, "map", method="rollout")["map"]), "<f4").reshape(ex.grid)
    np.testing.assert_allclose(found, vit_demo.explore(photo, "photos-tiny", 20, fit="keep").rollout(), atol=1e-6)


def test_a_map_and_its_test_at_once_compute_the_map_once(source, monkeypatch):
    passes = []
    plain = methods.METHODS["occlusion"]

    @wraps(plain.compute)
    def compute(*arguments, **options):
        passes.append(1)
        time.sleep(0.3)
        return plain.compute(*arguments, **options)

    monkeypatch.setitem(methods.METHODS, "occlusion", replace(plain, compute=compute))
    about = {"source": source, "method": "occlusion", "label": 2}

    async def both():
        await asyncio.gather(*(map_requests.ask({"about": what, **about}) for what in ("map", "test")))

    run(both())
    assert ask(source, "test", method="occlusion", label=2)["fractions"] and ask(
        source, "map", method="occlusion", label=2
    )
    assert len(passes) == 1


def test_a_quick_map_does_not_wait_for_any_number_of_slow_ones(source, monkeypatch):
    go_on = threading.Event()

    def work(subject, sent):
        assert go_on.wait(30)
        return {"fine": True}

    monkeypatch.setitem(map_requests.ANSWERS, "test", (work, True))
    monkeypatch.setattr(map_requests, "PATIENCE", 0.01)
    slow = [{"about": "test", "source": source, "method": "rollout", "label": label} for label in range(10)]

    async def ask_all():
        return await asyncio.gather(*map(map_requests.ask, slow))

    assert run(ask_all()) == [{"done": 0, "total": 0}] * 10
    assert "map" in answer({"about": "map", "source": source, "method": "value_weighted", "block": 3})["answer"]
    go_on.set()
    assert [answer(sent) for sent in slow] == [{"answer": {"fine": True}}] * 10


def test_a_bug_is_logged_and_said_in_one_sentence_that_gives_nothing_away(source, monkeypatch, caplog):
    monkeypatch.setitem(map_requests.ANSWERS, "logit_lens", (lambda *_: {}["/secret/path"], False))
    map_requests._answers.clear()
    assert answer({"about": "logit_lens", "source": source}) == {"error": map_requests.FAILED}
    assert "/secret/path" in caplog.text


def test_progress_is_told_until_the_answer_is_there(source, monkeypatch):
    monkeypatch.setattr(map_requests, "PATIENCE", 0.01)
    go_on = threading.Event()

    def work(subject, sent):
        report(3, 10)
        assert go_on.wait(10)
        return {"fine": True}

    monkeypatch.setitem(map_requests.ANSWERS, "test", (work, True))
    sent = {"about": "test", "source": source, "method": "rollout", "label": 7}
    while (said := run(map_requests.ask(sent))) != {"done": 3, "total": 10}:
        assert said == {"done": 0, "total": 0}
    go_on.set()
    assert answer(sent) == {"answer": {"fine": True}}


def test_the_docs_explain_every_method_with_formula_and_source():
    assert set(HEADINGS) == set(METHODS)
    for method in METHODS:
        html = " ".join(method_html(method).split())
        assert "<code>" in html and ("https://arxiv.org/abs/" in html or "This package's own" in html)
        specific = "Depends on the class." if METHODS[method].class_specific else "Does not depend on the class."
        assert specific in html
        assert "`" not in html and "](" not in html and 500 < len(html) < 2500


def test_docs_become_html_and_nothing_else_does(monkeypatch):
    text = {"Relevance": "A *star*, a **bold** `a*b* < c`\n<script>. [x](https://a.b/c_d)", method_docs.NOTATION: "N."}
    monkeypatch.setattr(method_docs, "sections", lambda: text)
    html = method_html("relevance")
    assert html.startswith("<p>A <i>star</i>, a <b>bold</b> <code>a*b* &lt; c</code>\n&lt;script&gt;. ")
    assert '<a href="https://a.b/c_d" target="_blank" rel="noopener">x</a>' in html


def test_without_docs_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(method_docs, "DOCS", tmp_path / "none.md")
    method_docs.sections.cache_clear()
    with pytest.raises(ValueError, match=r"not part of this installation"):
        method_html("rollout")
    method_docs.sections.cache_clear()
