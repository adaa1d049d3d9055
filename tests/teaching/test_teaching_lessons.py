"""The numbers in the answers of the lessons on teaching, with drawings as in ``drawings.py``."""

from __future__ import annotations

import re

import numpy as np
import pytest

import vit_demo
from vit_demo.web.catalog import method_docs

from .drawings import drawing

KINDS = ["heart", "star"]
OTHERS = range(100, 120)


def teach(*more, **line: bool):
    examples = {kind: [drawing(kind, seed, line=line.get(kind, False)) for seed in range(5)] for kind in KINDS}
    examples["heart"] += more
    return vit_demo.teach(examples, "digits-small", patch_size=4)


@pytest.fixture(scope="module")
def shortcut():
    return teach(heart=True)


def right(taught, kind: str) -> int:
    explainer = vit_demo.Explainer(taught)
    return sum(explainer(drawing(kind, seed)).top(1)[0][0] == kind for seed in OTHERS)


def test_a_heart_and_a_star_and_what_speaks_for_each():
    answer = method_docs.lesson(12)["answer"]
    explainer = vit_demo.Explainer(teach())
    found = {kind: [explainer(drawing(kind, seed)) for seed in OTHERS] for kind in KINDS}
    every = [(kind, *ex.top(1)[0]) for kind in KINDS for ex in found[kind]]
    assert sum(kind == label for kind, label, _ in every) == 40 and "all 40 other drawings right" in answer
    assert f"{100 * np.mean([probability for *_, probability in every]):.0f} % sure" in answer
    maps = {kind: np.mean([ex.heatmap("libra_fullgrad", kind) for ex in found[kind]], 0) for kind in KINDS}
    strongest = {kind: [divmod(int(i), 7) for i in np.argsort(-maps[kind].ravel())] for kind in KINDS}
    assert strongest["star"][0] == (5, 4) and set(strongest["star"][1:3]) == {(4, 2), (5, 2)}
    assert "(row 6, column 5, then rows 5 and 6 of column 3)" in answer
    assert strongest["heart"][0] == (4, 2) and "(row 5, column 3)" in answer


def test_a_line_below_becomes_what_is_learned(shortcut):
    answer = method_docs.lesson(13)["answer"]
    explainer = vit_demo.Explainer(shortcut)
    without = [explainer(drawing("heart", seed)) for seed in OTHERS]
    assert shortcut.accuracy == 1 and all(ex.top(1)[0][0] == "star" for ex in without)
    sure = np.mean([ex.probabilities[1] for ex in without])
    maps = [explainer(drawing("heart", seed, line=True)).heatmap("libra_fullgrad", "heart").clip(0) for seed in OTHERS]
    share = np.mean([each[5:].sum() / each.sum() for each in maps])
    assert f"20 hearts without their line for a star, {100 * sure:.0f} % sure: {100 * share:.0f} % of what" in answer
    assert re.search("lowest 2 of 7 rows", answer)
    assert right(teach(*[drawing("heart", seed) for seed in range(5, 10)], heart=True), "heart") == 20
