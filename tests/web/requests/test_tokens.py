"""The reply with a block's tokens against the package, for one picture and for two."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests import tokens
from vit_demo.web.requests.kinds import KINDS
from vit_demo.web.requests.parse import ResultRequest, drawing_source
from vit_demo.web.requests.payload import data_url, source_of

from ...replies import complete


def explored(digit, preset="digits-tiny", patch_size=4):
    result = vit_demo.explore(example_picture(digit), preset, patch_size=patch_size)
    source = drawing_source(data_url(example_picture(digit)))
    return result, source_of(result, ResultRequest(source, preset, patch_size, "crop"))


@pytest.fixture(scope="module")
def three():
    return explored(3)


@pytest.fixture(scope="module")
def eight():
    return explored(8)


def numbers(reply, name, kind="<f4"):
    return np.frombuffer(base64.b64decode(reply[name]), kind).astype(np.float64)


def unit_vectors(reply):
    lengths, mean = numbers(reply, "lengths"), numbers(reply, "mean")
    components = numbers(reply, "levels", "<i2").reshape(len(lengths), -1) / 32767 * numbers(reply, "peaks")
    return np.column_stack([components + mean, numbers(reply, "offsets")]) / lengths[:, None]


def test_products_of_the_tokens_are_the_cosine_similarities(three, eight):
    (result, source), (other, other_source) = three, eight
    one = complete({"kind": "tokens", "source": source, "block": 2})["result"]
    two = complete({"kind": "tokens", "source": source, "block": 2, "other": other_source})["result"]
    np.testing.assert_allclose(
        unit_vectors(one)[9] @ unit_vectors(one).T, result.similarity((1, 2), 2).ravel(), atol=1e-3
    )
    expected = [result.similarity((1, 2), 2).ravel(), result.similarity((1, 2), 2, other).ravel()]
    np.testing.assert_allclose(unit_vectors(two)[9] @ unit_vectors(two).T, np.concatenate(expected), atol=1e-3)
    sampled = unit_vectors(two) @ unit_vectors(two).T
    assert two["lowest"] == pytest.approx(np.quantile(sampled, 0.1), abs=1e-3)
    for shares, removed in ((one["shares"], False), (one["foreground"]["shares"], True)):
        scores = result.pca(2, remove_background=removed).reshape(49, 3)
        kept = np.isfinite(scores[:, 0])
        np.testing.assert_allclose(shares, scores[kept].var(0) / result.tokens(2)[kept].var(0).sum(), rtol=1e-3)
    assert [picture["grid"] for picture in two["pictures"]] == [[7, 7], [7, 7]]
    assert "image" not in two["pictures"][0] and two["pictures"][1]["image"].startswith("data:image/png")


def test_norms_outliers_and_classes_are_the_packages(three):
    result, source = three
    reply = complete({"kind": "tokens", "source": {**source, "dropped": [5]}, "block": 5})["result"]
    left = result.drop_patches([(0, 5)])
    assert reply["pictures"][0]["dropped"] == [5]
    np.testing.assert_allclose(numbers(reply, "norms"), np.delete(left.norms().ravel(), 5), rtol=1e-5)
    lens = [patch for row in left.logit_lens(patches=True)[-1] for patch in row if patch]
    classes = numbers(reply, "classes", "<u4").reshape(48, 3).astype(int)
    assert [[reply["names"][str(index)] for index in patch] for patch in classes] == [
        [label for label, _ in patch[:3]] for patch in lens
    ]
    np.testing.assert_allclose(
        numbers(reply, "probabilities").reshape(48, 3), [[p for _, p in patch[:3]] for patch in lens], rtol=1e-5
    )
    assert reply["outliers"] == [] and reply["width"] == 64


def test_the_second_picture_gets_the_model_of_the_first(three):
    other = explored(1, "digits-small", 7)[1]
    reply = complete({"kind": "tokens", "source": three[1], "block": 0, "other": {**other, "preset": "/etc"}})["result"]
    assert reply["pictures"][1]["grid"] == [7, 7]


def test_removed_patches_are_named_row_by_row(three):
    result, source = three
    reply = complete({"kind": "tokens", "source": {**source, "dropped": [0, 9, 23]}, "block": 0})["result"]
    assert result.grid == (7, 7) and reply["pictures"][0]["dropped"] == [0, 9, 23]


def test_equal_requests_are_cached_and_others_are_not_mixed_up(three, eight, empty_replies, monkeypatch):
    def count(requested, request):
        computed.append(request.block)
        return {"number": len(computed)}

    computed: list[int] = []
    monkeypatch.setitem(KINDS, "tokens", replace(KINDS["tokens"], compute=count))
    sent = [
        {"kind": "tokens", "source": three[1], "block": 1},
        {"kind": "tokens", "source": three[1], "block": 2},
        {"kind": "tokens", "source": three[1], "block": 1, "other": eight[1]},
        {"kind": "tokens", "source": three[1], "block": 1, "other": three[1]},
    ]
    assert [complete(one)["result"]["number"] for one in sent * 2] == [1, 2, 3, 4, 1, 2, 3, 4]


def test_too_many_patches_get_a_sentence(three, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_SENT_TOKENS", 97)
    sent = {"kind": "tokens", "source": three[1], "block": 4}
    assert "result" in complete(sent)
    assert "too many patches" in complete({**sent, "other": three[1]})["error"]


@pytest.mark.parametrize(("preset", "patch_size", "most"), [("digits-small", 2, 64_000), ("photos-tiny", 12, 36_000)])
def test_the_reply_stays_small(preset, patch_size, most):
    result = vit_demo.explore(example_picture(7).convert("RGB"), preset, patch_size=patch_size)
    assert len(json.dumps(tokens.token_payload([result], 5))) < most
