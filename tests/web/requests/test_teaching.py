"""Requests that teach a network: what is refused, what is kept, and what a link brings back."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save

import vit_demo
from vit_demo.service.job import owner
from vit_demo.web.requests import teaching
from vit_demo.web.requests.poll import handle
from vit_demo.weights import PRESETS, kept_networks
from vit_demo.weights.kept_networks import Shares
from vit_demo.weights.taught_heads import MAX_LINK, commit_of
from vit_demo.words.texts import NOT_SHOWN

from ...asynchronous import run
from ...replies import unpack

NAME = "taught-" + "x" * 22


def ask(who: str = "", **fields):
    async def answer():
        owner.set(who)
        return await handle(fields)

    while not {"result", "error"} & (reply := unpack(run(answer()))).keys():
        pass
    return reply


def example(kind: int, seed: int) -> dict[str, str]:
    """A digit of 28 x 28 pixels: a bar or a box, somewhere."""
    digit = np.zeros((28, 28), np.uint8)
    col, row = divmod(seed, 6)
    digit[4 + row : 20 + row, 4 + col : (8 if kind else 18) + col] = 255
    if not kind:
        digit[8 + row : 16 + row, 8 + col : 14 + col] = 0
    Image.fromarray(digit).save(buffer := io.BytesIO(), "PNG")
    return {"digit": "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()}


CLASSES = [{"name": name, "examples": [example(kind, seed) for seed in range(5)]} for kind, name in enumerate("ab")]
BASE = {"kind": "teach", "preset": "digits-tiny", "patch_size": 7, "fit": "crop"}


@pytest.fixture(scope="module")
def taught():
    return ask(**BASE, classes=CLASSES)["result"]


def test_the_reply_is_the_network_of_half_precision_and_its_link_brings_it_back(taught):
    entry = taught["model"]
    assert (taught["count"], entry["base"], entry["first"], entry["title"]) == (10, "digits-tiny", "a", "a, b")
    assert 0 <= taught["right"] <= 10 and len(entry["link"]) <= MAX_LINK
    source = {**example(0, 9), "preset": entry["name"], "patch_size": 7, "fit": "crop"}
    labels = ask(kind="result", source=source)["result"]["predictions"]["labels"]
    assert sorted(labels) == ["a", "b"]
    again = ask(kind="model", name=NAME, taught=entry["link"])["result"]
    assert again["name"] == entry["name"] and again["link"]
    assert ask(kind="map", source=source, method="libra_fullgrad")["result"]["map"]


def test_another_example_costs_one_pass(taught, monkeypatch):
    passes = []
    real = teaching.read_token

    def counted(*given, **options):
        passes.append(given)
        return real(*given, **options)

    monkeypatch.setattr(teaching, "read_token", counted)
    more = [CLASSES[0], {**CLASSES[1], "examples": [*CLASSES[1]["examples"], example(1, 7)]}]
    assert ask(**BASE, classes=more)["result"]["count"] == 11 and len(passes) == 1


def test_an_address_has_the_tokens_of_so_many_pictures(monkeypatch):
    class Counted(Shares):
        def put(self, name, value, owner, nbytes):
            super().put(name, value, owner, nbytes)
            held.append(Counter(who for _, who, *_ in self._kept.values()))

    held: list[Counter] = []
    monkeypatch.setattr(teaching, "_tokens", Counted(8, 4))
    for who in ("one", "two", "three"):
        assert ask(who, **BASE, classes=CLASSES)["result"]["count"] == 10, "more than are kept"
    assert max(each["one"] for each in held) == max(each["two"] for each in held) == 4, "of an address"
    assert max(each.total() for each in held) == 8 and len(held[-1]) == 3, "of all"


def test_one_class_teaches_nothing_yet_and_one_example_says_nothing_of_others():
    assert ask(**BASE, classes=CLASSES[:1])["result"] == {"model": None, "right": None, "count": 5}
    few = [CLASSES[0], {"name": "b", "examples": [example(1, 0)]}]
    assert ask(**BASE, classes=few)["result"]["right"] is None


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (7, "needs a picture"),
        ([{"name": "a", "examples": []}], "needs a picture"),
        ([{"name": str(i), "examples": [example(0, i)]} for i in range(11)], "Teach 2 to"),
        ([{"name": "a", "examples": 61 * [example(0, 0)]}], "At most"),
        ([{"name": "a", "examples": 2 * [example(0, 0)]}, CLASSES[1]], "are the same"),
        ([CLASSES[0], {**CLASSES[1], "name": "a"}], "Two classes"),
        ([CLASSES[0], {**CLASSES[1], "name": " "}], "one line"),
        ([CLASSES[0], {**CLASSES[1], "name": "b" * 41}], "one line"),
        ([CLASSES[0], {**CLASSES[1], "name": "b\u2028c"}], "one line"),
        ([CLASSES[0], {**CLASSES[1], "name": "b\ud800"}], "one line"),
        ([CLASSES[0], {**CLASSES[1], "name": None}], "one line"),
        *(([CLASSES[0], {**CLASSES[1], "name": f"b{mark}c"}], "one line") for mark in sorted(NOT_SHOWN)),
        *(([CLASSES[0], {**CLASSES[1], "name": name}], "one line") for name in ("\u200f", "\U000e0001 \u0301")),
        ([CLASSES[0], {"name": "b", "examples": [{"upload": "/etc/passwd"}]}], "not on the server"),
        ([CLASSES[0], {"name": "b", "examples": [{"digit": "data:image/png;base64,AAAA"}]}], ""),
        ([CLASSES[0], {"name": "b", "examples": ["x"]}], "no source"),
    ],
)
def test_bad_classes_get_a_sentence(classes, words):
    assert words in ask(**BASE, classes=classes)["error"]


COMMIT = commit_of(PRESETS["digits-tiny"], 7)


def forged(head: torch.Tensor, **about: str) -> str:
    given = {
        "format": "vit_demo taught 1",
        "model": "digits-tiny",
        "commit": "",
        "patch_size": "7",
        "labels": '["a", "b"]',
    }
    return base64.urlsafe_b64encode(save({"head": head}, given | about)).decode().rstrip("=")


@pytest.mark.parametrize(
    "link",
    [
        "",
        "AAAA",
        "é",
        7,
        "A" * (MAX_LINK + 1),
        forged(torch.full((2, 9), torch.inf)),
        forged(torch.ones(2, 65, dtype=torch.complex64), commit=COMMIT),
        forged(torch.ones(2, 65, dtype=torch.bool), commit=COMMIT),
        forged(torch.ones(2, 65, dtype=torch.int8), commit=COMMIT),
        forged(torch.ones(2, 65, dtype=torch.float64), commit=COMMIT),
        forged(torch.ones(3, 9)),
        forged(torch.ones(2, 9), labels='["a", "a"]'),
        forged(torch.ones(2, 9), labels="[" * 3000),
        forged(torch.ones(2, 9), labels=json.dumps(["x" * 50, "b"])),
        *(forged(torch.ones(2, 65), commit=COMMIT, labels=json.dumps(["a", f"b{mark}"])) for mark in sorted(NOT_SHOWN)),
        forged(torch.ones(2, 9), patch_size="x"),
        forged(torch.ones(2, 9), format="another"),
        forged(torch.ones(2, 9)),  # of other weights
        forged(torch.ones(2, 9), model="/etc"),
    ],
)
def test_hostile_links_get_a_sentence(link):
    assert ask(kind="model", name=NAME, taught=link)["error"]


@pytest.mark.parametrize("width", [2, 64, 66, 129])
def test_a_head_of_another_width_is_refused_when_the_link_is_read(width, monkeypatch):
    monkeypatch.setattr(kept_networks, "networks", kept := Shares(1 << 20, 1 << 20))
    reply = ask(kind="model", name=NAME, taught=forged(torch.ones(2, width), commit=COMMIT))
    assert "taught for another network" in reply["error"] and not kept._kept


def test_a_forged_link_of_the_right_weights_and_numbers_is_a_network():
    forgery = forged(torch.ones(2, 65), commit=COMMIT)
    assert ask(kind="model", name=NAME, taught=forgery)["result"]["base"] == "digits-tiny", (
        "so the others lack one thing"
    )


def test_a_network_that_is_gone_says_so():
    source = {**example(0, 0), "preset": NAME, "patch_size": 7, "fit": "crop"}
    assert "are gone" in ask(kind="result", source=source)["error"]
    with pytest.raises(vit_demo.PresetError, match="are gone"):
        vit_demo.explore("x.png", NAME)
