"""The presets of the Hub agree with what timm publishes."""

import re
from dataclasses import replace

import pytest
import timm
import torch
import transformers

from vit_demo.trace import adapt, outline
from vit_demo.weights import PRESETS
from vit_demo.words.classifier import WordClassifier
from vit_demo.words.texts import AS_TYPED, DEFAULT_WORDS

NEW = {"deit3-s16", "dinov3-s16", "eva02-ti14", "beit-b16"}
ALL = [preset for preset in PRESETS.values() if preset.is_downloaded]
HUB_PRESETS = [preset for preset in ALL if not preset.takes_words]


def test_presets_without_a_known_commit_are_listed():
    pinned = {preset.name for preset in ALL if re.fullmatch("[0-9a-f]{40}", preset.revision)}
    assert {preset.name for preset in ALL} - pinned == {"flexivit-s", "deit3-s16", "clip-b16"}


@pytest.mark.parametrize("preset", [p for p in HUB_PRESETS if p.library], ids=lambda preset: preset.name)
def test_the_table_says_of_each_network_of_timm_what_is_found_in_it(preset):
    """Its head is compared with one of two blocks that runs; all else with the whole, which takes no memory."""
    name = preset.repo.removeprefix("timm/")
    with torch.device("meta"):
        whole = timm.create_model(name)
        shape, has_mask = outline(whole, preset.image_size)
    assert preset.has_mask == has_mask
    assert preset.parameters == sum(parameter.numel() for parameter in whole.parameters())
    small = timm.create_model(name, depth=1, img_size=2 * preset.default_patch_size, embed_dim=48, num_heads=3).eval()
    for parameter in small.parameters():
        parameter.data += 0.05 * torch.randn(parameter.shape)
    found = adapt(small, 2 * preset.default_patch_size).config
    tokens = {"pool": found.pool, "class_token": found.class_token, "num_registers": found.num_registers}
    assert replace(shape, num_classes=preset.config.num_classes, **tokens) == preset.config
    assert preset.config.num_classes in (0, shape.num_classes)


@pytest.mark.parametrize("preset", HUB_PRESETS, ids=lambda preset: preset.name)
def test_preprocessing_is_timms(preset):
    published = timm.get_pretrained_cfg(preset.repo.removeprefix("timm/"))
    assert published.hf_hub_id == preset.repo, "where timm itself fetches it"
    assert (preset.mean, preset.std) == (tuple(published.mean), tuple(published.std))
    assert preset.crop_fraction == published.crop_pct and preset.interpolation == published.interpolation
    assert published.input_size == (3, preset.image_size, preset.image_size)
    assert preset.config.num_classes == len(preset.labels)
    assert preset.config.num_classes == published.num_classes
    assert published.crop_mode == "center"


def test_patch_sizes():
    sizes = {preset.name: preset.patch_sizes for preset in HUB_PRESETS}
    assert sizes["flexivit-b"] == sizes["flexivit-s"] == tuple(p for p in range(8, 49) if 240 % p == 0)
    assert sizes["vit-ti16"] == (8, 14, 16, 28, 32) and sizes["dinov2-s14"] == (14, 37)
    for preset in HUB_PRESETS:
        assert preset.default_patch_size == preset.config.patch_size
        assert not preset.is_resampled(preset.default_patch_size)
        assert preset.is_resampled(preset.patch_sizes[-1]) != preset.flexible


def test_the_notes_of_new_presets_name_the_licence_under_which_timm_publishes_them():
    words = {"apache-2.0": "Apache-2.0 licence.", "mit": "MIT licence.", "dinov3-license": "Meta's DINOv3 licence."}
    for name in NEW:
        licence = timm.get_pretrained_cfg(PRESETS[name].repo.removeprefix("timm/")).license
        assert PRESETS[name].note.endswith(words[licence]), name


@pytest.mark.parametrize(
    ("name", "vision", "text"),
    [
        ("tinyclip-8m", (256, 10, 4), (256, 3, 4)), ("tinyclip-39m", (512, 12, 8), (512, 6, 8)),
        ("clip-b16", (768, 12, 12), (512, 12, 8)), ("siglip-b16", (768, 12, 12), (768, 12, 12)),
    ],
)  # fmt: skip
def test_the_table_says_of_each_network_of_words_what_transformers_builds(name, vision, text):
    """Widths, blocks and heads of both towers, as published; the sizes of the files agree with these parameters."""
    preset, kind = PRESETS[name], "Siglip" if name == "siglip-b16" else "CLIP"
    shapes = [
        dict(zip(("hidden_size", "num_hidden_layers", "num_attention_heads"), shape, strict=True))
        | {"intermediate_size": 4 * shape[0]}
        for shape in (vision, text)
    ]
    config = getattr(transformers, f"{kind}Config")(
        vision_config=shapes[0] | {"image_size": 224, "patch_size": 16}, text_config=shapes[1]
    )
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = getattr(transformers, f"{kind}Model")(config)
        shape, has_mask = outline(WordClassifier(model, None, DEFAULT_WORDS, AS_TYPED), 224)
    assert preset.parameters == sum(parameter.numel() for parameter in model.parameters())
    read = {name: getattr(preset.config, name) for name in ("pool", "class_token", "num_registers")}  # not in outlines
    assert shape.num_prefix_tokens == preset.config.num_prefix_tokens
    assert replace(shape, **read) == preset.config and preset.has_mask == has_mask and preset.image_size == 224
    assert re.search(r"\(published\)\. (MIT|Apache-2\.0|CC BY-NC 4\.0) licence\.$", preset.note)
