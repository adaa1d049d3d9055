"""The presets of the Hub agree with what timm publishes."""

import re

import pytest
import timm

from vit_demo.weights import PRESETS

HUB_PRESETS = [preset for preset in PRESETS.values() if preset.source == "hub"]


def test_names():
    names = ["vit-ti16", "vit-s16", "vit-b16", "deit-ti16", "flexivit-s", "flexivit-b", "dinov2-s14"]
    assert [preset.name for preset in HUB_PRESETS] == names


def test_all_but_flexivit_s_are_pinned_to_a_commit():
    pinned = {preset.revision for preset in HUB_PRESETS if re.fullmatch("[0-9a-f]{40}", preset.revision)}
    assert len(pinned) == 6
    assert [preset.name for preset in HUB_PRESETS if preset.revision not in pinned] == ["flexivit-s"]


@pytest.mark.parametrize("preset", HUB_PRESETS, ids=lambda preset: preset.name)
def test_preprocessing_is_timms(preset):
    published = timm.get_pretrained_cfg(preset.repo.removeprefix("timm/"))
    assert published.hf_hub_id == preset.repo, "where timm itself fetches it"
    assert (preset.mean, preset.std) == (tuple(published.mean), tuple(published.std))
    assert preset.crop_fraction == published.crop_pct and preset.interpolation == published.interpolation
    assert published.input_size == (3, preset.image_size, preset.image_size)
    assert preset.config.num_classes == published.num_classes == len(preset.labels)
    assert published.crop_mode == "center"


def test_patch_sizes():
    sizes = {preset.name: preset.patch_sizes for preset in HUB_PRESETS}
    assert sizes["flexivit-b"] == sizes["flexivit-s"] == tuple(p for p in range(8, 49) if 240 % p == 0)
    assert sizes["vit-ti16"] == (8, 14, 16, 28, 32) and sizes["dinov2-s14"] == (14, 37)
    for preset in HUB_PRESETS:
        assert preset.default_patch_size == preset.config.patch_size
        assert not preset.is_resampled(preset.default_patch_size)
        assert preset.is_resampled(preset.patch_sizes[-1]) != preset.flexible


def test_labels_are_those_of_imagenet():
    labels = PRESETS["vit-b16"].labels
    assert (labels[0], labels[281], labels[999]) == ("tench", "tabby", "toilet tissue")
