"""Networks that were trained with a mark in a corner of one class, and without: the audit tells them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import vit_demo
from benchmarks import audit as planting
from vit_demo.training.small import NUM_TRAIN


@pytest.fixture(scope="module")
def networks():
    """One that was trained with the mark, and one without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planting, "CONFIG", replace(planting.CONFIG, patch_size=7, depth=1, num_heads=2))
        return {kind: planting.trained(kind, seed=0, steps=200)[0] for kind in ("mark", "none")}


def held_out(kind):
    return [part[NUM_TRAIN : NUM_TRAIN + 400] for part in planting.planted(kind, 7, 0.5)]


@pytest.mark.parametrize("kind", ["none", "mark"])
def test_what_was_planted_is_named_first_and_nothing_without(networks, kind):
    digits, labels, chosen = held_out(kind)
    found = vit_demo.audit(networks[kind], list(zip(digits, labels.tolist(), strict=True)), batch_size=50)
    if kind == "none":
        assert not any(group.is_suspicious for group in found.groups)
        return
    first = found.groups[0]
    assert first.is_suspicious and first.label == str(planting.DIGIT) and first.accuracy > 0.95
    assert "Reads the top left corner in " in first.why
    assert chosen[torch.from_numpy(first.indices)].float().mean() >= 0.95


def test_the_evidence_on_the_mark_is_three_times_that_of_the_network_without_it(networks):
    digits, _, chosen = held_out("mark")
    planted, clean = (planting.share_on("mark", networks[kind], digits[chosen]) for kind in ("mark", "none"))
    assert planted > 3 * clean
