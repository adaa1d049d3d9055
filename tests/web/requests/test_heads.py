"""Requests about heads, compared with the package; which heads are silent is checked, and part of what a result is."""

import base64

import numpy as np
import pytest

from vit_demo.errors import InputError
from vit_demo.web.requests.parse import ResultRequest
from vit_demo.web.requests.payload import payload

from ...replies import complete, send


def numbers(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_effects_contributions_and_the_fewest_are_those_of_the_package(result, source):
    for silent in ([], [[0, 1], [2, 0]]):
        about = {**source, "silent": silent}
        expected = result.without(heads=map(tuple, silent))
        found = numbers(send(about, "head_effects", label=8, against=3)["effects"])
        np.testing.assert_allclose(found, expected.head_effects(8, 3).ravel(), atol=1e-5)
        found, parts = send(about, "contributions", label=8), expected.contributions(8)
        np.testing.assert_allclose(numbers(found["heads"]), parts.heads.ravel(), atol=1e-5)
        np.testing.assert_allclose(numbers(found["mlps"]), parts.mlps, atol=1e-5)
        assert (found["tokens"], found["bias"]) == pytest.approx((parts.tokens, parts.bias), abs=1e-5)
        assert found["logit"] == pytest.approx(expected.logits[8], abs=1e-3)
    fewest = result.enough_heads(share=0.9)
    found = send(source, "fewest_heads")
    assert found == {"heads": [list(head) for head in fewest.heads], "is_minimal": fewest.is_minimal}


def test_a_result_without_heads_is_another_and_says_so(result, source, request_of):
    columns = result.grid[1]
    about = {**source, "silent": [[2, 1], [0, 0]], "dropped": [3, 5]}
    found = complete({"kind": "result", "source": about})["result"]
    expected = result.drop_patches([divmod(patch, columns) for patch in (3, 5)]).without(heads=[(0, 0), (2, 1)])
    assert found["silent"] == found["source"]["silent"] == [[0, 0], [2, 1]] and found["dropped"] == [3, 5]
    shares = numbers(found["predictions"]["probabilities"])
    np.testing.assert_allclose(shares, np.sort(expected.probabilities)[::-1], atol=1e-6)
    assert payload(result, request_of)["silent"] == [] and "silent" not in payload(result, request_of)["source"]
    again = complete({"kind": "result", "source": source})["result"]
    assert again["silent"] == [] and again["run"] != found["run"]


@pytest.mark.parametrize(
    ("silent", "message"),
    [
        ("2.1", "list of at most 1000"),
        ([[0, 0]] * 10_000, "list of at most 1000"),
        ([[0]], "pairs"),
        ([0, 1], "pairs"),
        ([[0, 1, 2]], "pairs"),
        ([[0, -1]], "head must be"),
        ([[0.5, 0]], "block must be"),
        ([[True, 0]], "block must be"),
        ([[0, 0], [1, 0], [0, 0]], "named twice"),
        ([[0, 0], ["0", 0.0]], "named twice"),
    ],
)
def test_heads_that_make_no_sense_are_refused_in_one_sentence(source, silent, message):
    with pytest.raises(InputError, match=message) as raised:
        ResultRequest.parse({**source, "silent": silent})
    assert len(str(raised.value)) < 200


def test_a_head_that_is_not_there_is_said_and_the_next_request_works(source):
    for silent in ([[99, 0]], [[0, 99]]):
        reply = complete({"kind": "result", "source": {**source, "silent": silent}})
        assert "There is no" in reply["error"]
    assert complete({"kind": "result", "source": {**source, "silent": [[0, 0]]}})["result"]["silent"] == [[0, 0]]
