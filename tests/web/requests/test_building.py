"""The size of a network that is built, against the real modules and torch's counter of operations."""

from dataclasses import replace
from typing import Any

import pytest

from vit_demo.model import ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.training.small import DEFAULT_CONFIG
from vit_demo.web.catalog.menu import TRAINING_LIMITS

from ...network_counts import counted, networks
from ...replies import handle

NETWORKS = networks()


def size_of(config: ViTConfig, patch_size: int | None = None) -> dict[str, Any]:
    sent = {"config": config.to_dict(), "patch_size": patch_size or config.patch_size}
    return handle({"kind": "network", **sent})["result"]


@pytest.mark.parametrize("title", NETWORKS)
def test_stages_lead_from_the_picture_to_the_logits_and_add_up_to_what_the_modules_have(title):
    config, patch_size = NETWORKS[title]
    found = size_of(config, patch_size)
    assert {name: found[name] for name in ("parameters", "operations", "tokens", "attention_bytes")} == counted(
        config, patch_size
    )
    stages = found["stages"]
    assert stages[0]["shape"] == [1, config.in_channels, config.image_size, config.image_size]
    assert stages[-1]["shape"] == [1, config.num_classes or config.num_features]
    for count in ("parameters", "operations"):
        assert sum(stage[count] for stage in stages) == found[count]


def test_vit_tiny_has_the_shapes_of_its_notebook():
    stages = {stage["name"]: stage for stage in size_of(VIT_TINY)["stages"]}
    assert stages["attention"]["shape"] == [1, 197, 192]
    assert stages["attention"]["inner"]["weights"] == [1, 3, 197, 197]


def test_stages_are_named_by_what_is_in_them():
    bare = replace(VIT_TINY, class_token=False, pool="mean", final_norm=False, num_classes=0)
    names = [stage["name"] for stage in size_of(bare)["stages"]]
    assert names == ["picture", "patch_embed", "positions", "attention", "mlp", "pooling"]


def test_a_network_can_be_trained_up_to_each_limit_and_not_beyond_it(monkeypatch):
    counts = size_of(DEFAULT_CONFIG) | {"depth": DEFAULT_CONFIG.depth}
    assert counts["hindrance"] == ""
    for name in TRAINING_LIMITS:
        with monkeypatch.context() as patch:
            patch.setitem(TRAINING_LIMITS, name, counts[name])
            assert size_of(DEFAULT_CONFIG)["hindrance"] == ""
            patch.setitem(TRAINING_LIMITS, name, counts[name] - 1)
            assert size_of(DEFAULT_CONFIG)["hindrance"] == "size"
    assert size_of(replace(DEFAULT_CONFIG, num_classes=9))["hindrance"] == "task"


@pytest.mark.parametrize(
    ("config", "patch_size", "words"),
    [
        (3, 4, "no network"),
        (None, 4, "no network"),
        ({"layers": 2}, 16, "no network"),
        ({"depth": "12"}, 16, "depth must be a whole number"),
        ({"mlp_ratio": 1e308}, 16, "mlp_ratio must be a number"),
        ({}, 5, "does not divide an image of 224"),
        ({}, None, "patch size"),
        ({"image_size": 2**30, "patch_size": 1}, 1, "too large to be counted"),
    ],
)
def test_what_is_no_network_gets_a_sentence(config, patch_size, words):
    assert words in handle({"kind": "network", "config": config, "patch_size": patch_size})["error"]
