"""Networks that were trained with a mark in a corner of one class, and without: the audit tells them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks import audit as planting


@pytest.fixture(scope="module")
def audits():
    """Of a network that was trained with the mark, and of one without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planting, "CONFIG", replace(planting.CONFIG, patch_size=7, depth=1, num_heads=2))
        networks = {kind: planting.trained(kind, seed=0, steps=200)[0] for kind in ("mark", "none")}
    return {kind: planting.audited(kind, network, 0) for kind, network in networks.items()} | {
        "without": planting.audited("mark", networks["none"], 0)
    }


@pytest.mark.parametrize("kind", ["none", "mark"])
def test_what_was_planted_is_named_first_and_nothing_without(audits, kind):
    found, chosen = audits[kind]
    if kind == "none":
        assert not any(group.is_suspicious for group in found.groups)
        return
    first = found.groups[0]
    assert first.is_suspicious and first.label == str(planting.DIGIT) and first.accuracy > 0.95
    assert "Reads the top left corner in " in first.why
    assert chosen[torch.from_numpy(first.indices)].float().mean() >= 0.95


def test_the_evidence_on_the_mark_is_three_times_that_of_the_network_without_it(audits):
    with_mark, without = (planting.evidence_on("mark", *audits[which])[1] for which in ("mark", "without"))
    assert with_mark > 3 * without and with_mark > 0.1
