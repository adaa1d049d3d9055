"""Requests of the page about a result, compared with the result itself."""

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
from vit_demo.web import map_requests
from vit_demo.web.components.pad import example_picture
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


def complete(sent):
    """Sends a request until its result is there, as the page does."""
    for _ in range(500):
        reply = run(map_requests.handle(sent))
        if "done" not in reply:
            return reply
    raise AssertionError("no result")


def send(source, kind, **details):
    return complete({"kind": kind, "source": source, **details})["result"]


def map_values(source, **view):
    sent = base64.b64decode(send(source, "map", **view)["map"])
    return np.frombuffer(sent, "<f4").reshape(4, 4)


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_bitwise_that_of_the_package(result, source, method):
    label = 8 if METHODS[method].class_specific else None
    np.testing.assert_array_equal(map_values(source, method=method, label=label), result.heatmap(method, label))


def test_attention_maps_take_block_head_patch_and_direction(result, source):
    view = {"method": "attention", "block": 2, "head": 1, "query": 6, "direction": "to"}
    np.testing.assert_array_equal(map_values(source, **view), result.attention(2, 1, (1, 2), "to"))
    view = {"method": "attention", "block": 2, "head": -1, "query": None, "direction": "from"}
    np.testing.assert_array_equal(map_values(source, **view), result.attention(2))
    np.testing.assert_array_equal(
        map_values(source, method="value_weighted", block=1), result.heatmap("value_weighted", layer=1)
    )


def test_faithfulness_is_that_of_the_requested_map_and_class(result, source):
    view = {"method": "attention", "block": 0, "head": 2, "query": None, "direction": "from"}
    found = send(source, "faithfulness", label=8, **view)
    wanted = result.faithfulness(result.attention(0, 2), label=8)
    assert found["fractions"] == wanted.fractions.tolist()
    for side, curve, area, chance in (
        ("deletion", wanted.deletion, wanted.deletion_area, wanted.random_deletion_area),
        ("insertion", wanted.insertion, wanted.insertion_area, wanted.random_insertion_area),
    ):
        assert found[side]["curve"] == pytest.approx(curve.tolist(), abs=1e-6)
        assert found[side]["area"] == pytest.approx(area) and found[side]["random_area"] == pytest.approx(chance)
        assert len(found[side]["random"]) == 5 and 0 <= found[side]["orders_beaten"] <= 5
    assert send(source, "randomization", method="attnlrp", label=8)["correlations"] == result.randomization(
        "attnlrp", 8
    )


def test_logit_lens_returns_the_prediction_after_each_block(result, source):
    predictions = send(source, "logit_lens")["predictions"]
    assert [(depth["label"], depth["probability"]) for depth in predictions] == [
        ranking[0] for ranking in result.logit_lens()
    ]


def test_a_result_without_some_patches_takes_further_requests(result, source):
    sent = send({**source, "dropped": [5, 6]}, "result")
    left = result.drop_patches([(1, 1), (1, 2)])
    assert sent["dropped"] == sent["source"]["dropped"] == [5, 6]
    assert sent["predictions"][0]["probability"] == pytest.approx(left.top(1)[0][1])
    np.testing.assert_array_equal(map_values(sent["source"], method="relevance"), left.relevance())


def test_a_block_request_returns_the_trace_of_that_block(result, source):
    assert send(source, "block", block=1) == block_payload(result, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "weather"}, "no request 'weather'"),
        ({"kind": "map", "method": "magic"}, "no method 'magic'"),
        ({"kind": "map", "method": ["rollout"]}, "method must be a string"),
        ({"kind": "map", "method": "relevance", "label": 10}, "no class 10"),
        ({"kind": "map", "method": "attention", "block": 9}, "no block 9"),
        ({"kind": "map", "method": "attention", "query": 99}, "no patch"),
        ({"kind": "block", "block": 6}, "no block 6"),
        ({"kind": "result", "dropped": [16]}, "no patch 16"),
        ({"kind": "result", "dropped": list(range(16))}, "At least one patch"),
        ({"kind": "result", "dropped": "all"}, "must be a list"),
        ({"kind": "result", "patch_size": 5}, "no patch size 5"),
        ({"kind": "result", "patch_size": None}, "must be a whole number"),
        ({"kind": "result", "preset": "/etc"}, "no preset '/etc'"),
        ({"kind": "result", "fit": "wide"}, "no fit 'wide'"),
        ({"kind": "result", "digit": "data:image/png;base64,AAAA"}, "drawing cannot be read"),
        ({"kind": "result", "digit": {"path": "/etc/passwd"}}, "not a digit"),
        ({"kind": "result", "digit": None, "upload": "/etc/passwd"}, "not on the server"),
        ({"kind": "method_docs", "method": "magic"}, "no method 'magic'"),
    ],
)
def test_an_invalid_request_gets_a_message_and_the_next_one_works(source, changes, message):
    fields = ("digit", "upload", "preset", "patch_size", "fit", "dropped")
    changed = {**source, **{name: value for name, value in changes.items() if name in fields}}
    assert message in complete({"source": changed, **{n: v for n, v in changes.items() if n not in fields}})["error"]
    assert len(send(source, "logit_lens")["predictions"]) == 7


@pytest.mark.parametrize("sent", [None, 3, "map", [], {}, {"kind": "map"}, {"kind": "result", "source": 3}])
def test_malformed_requests_get_a_message(sent):
    assert complete(sent)["error"].endswith(".")


def test_nothing_depends_on_what_is_cached(result, source):
    """A request contains all that is needed: a new engine without the picture computes it again."""
    wanted = map_values(source, method="relevance", label=5)
    map_requests._results.clear()
    map_requests._maps.clear()
    reset_engines()
    np.testing.assert_array_equal(map_values(source, method="relevance", label=5), wanted)


def test_a_photo_is_identified_by_its_upload_in_any_process(upload):
    photo = Image.effect_noise((80, 60), 90).convert("RGB")
    request = ResultRequest(upload_source(upload(photo)), "photos-tiny", 20, "keep")
    ex = get_engine().explore_source(request.source, PRESETS["photos-tiny"], 20, "keep")
    sent = payload(ex, request)["source"]
    reset_engines()
    found = np.frombuffer(base64.b64decode(send(sent, "map", method="rollout")["map"]), "<f4").reshape(ex.grid)
    np.testing.assert_allclose(found, vit_demo.explore(photo, "photos-tiny", 20, fit="keep").rollout(), atol=1e-6)


def test_a_map_and_its_faithfulness_at_once_compute_the_map_once(source, monkeypatch):
    passes = []
    plain = methods.METHODS["occlusion"]

    @wraps(plain.compute)
    def compute(*arguments, **options):
        passes.append(1)
        time.sleep(0.3)
        return plain.function(*arguments, **options)

    monkeypatch.setitem(methods.METHODS, "occlusion", replace(plain, function=compute))
    about = {"source": source, "method": "occlusion", "label": 2}

    async def both():
        await asyncio.gather(*(map_requests.handle({"kind": what, **about}) for what in ("map", "faithfulness")))

    run(both())
    assert send(source, "faithfulness", method="occlusion", label=2)["fractions"] and send(
        source, "map", method="occlusion", label=2
    )
    assert len(passes) == 1


def test_a_quick_map_does_not_wait_for_slow_ones(source, monkeypatch):
    go_on = threading.Event()

    def work(requested, fields):
        assert go_on.wait(30)
        return {"fine": True}

    monkeypatch.setitem(map_requests.HANDLERS, "faithfulness", (work, True))
    monkeypatch.setattr(map_requests, "POLL_SECONDS", 0.01)
    slow = [{"kind": "faithfulness", "source": source, "method": "rollout", "label": label} for label in range(10)]

    async def send_all():
        return await asyncio.gather(*map(map_requests.handle, slow))

    assert run(send_all()) == [{"done": 0, "total": 0}] * 10
    assert "map" in complete({"kind": "map", "source": source, "method": "value_weighted", "block": 3})["result"]
    go_on.set()
    assert [complete(sent) for sent in slow] == [{"result": {"fine": True}}] * 10


def test_a_bug_is_logged_and_its_details_are_not_sent(source, monkeypatch, caplog):
    monkeypatch.setitem(map_requests.HANDLERS, "logit_lens", (lambda *_: {}["/secret/path"], False))
    map_requests._results.clear()
    assert complete({"kind": "logit_lens", "source": source}) == {"error": map_requests.INTERNAL_ERROR}
    assert "/secret/path" in caplog.text


def test_progress_is_returned_until_the_result_is_there(source, monkeypatch):
    monkeypatch.setattr(map_requests, "POLL_SECONDS", 0.01)
    go_on = threading.Event()

    def work(requested, fields):
        report(3, 10)
        assert go_on.wait(10)
        return {"fine": True}

    monkeypatch.setitem(map_requests.HANDLERS, "faithfulness", (work, True))
    sent = {"kind": "faithfulness", "source": source, "method": "rollout", "label": 7}
    while (reply := run(map_requests.handle(sent))) != {"done": 3, "total": 10}:
        assert reply == {"done": 0, "total": 0}
    go_on.set()
    assert complete(sent) == {"result": {"fine": True}}
