"""Custom models, from the Hub or a folder: preprocessing, labels, logits, and what is refused."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

import vit_demo
from vit_demo.errors import CheckpointError, PresetError
from vit_demo.images import preprocess
from vit_demo.weights import find_preset

from .hub_server import COMMIT

PHOTO = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))


def expected_logits(model, preset):
    tensor, _ = preprocess(
        PHOTO, image_size=preset.image_size, patch_size=preset.default_patch_size, mean=preset.mean, std=preset.std,
        crop_fraction=preset.crop_fraction, crop_mode=preset.crop_mode, interpolation=preset.interpolation,
    )  # fmt: skip
    with torch.inference_mode():
        found = model(tensor)
    return getattr(found, "logits", found)[0].numpy()


def test_a_timm_repository_is_explored_by_its_name(hub, published):
    hub.repositories["someone/cats"] = published.files
    preset = find_preset("someone/cats")
    assert (preset.mean, preset.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert (preset.crop_fraction, preset.interpolation) == (0.8, "bilinear")
    assert preset.labels == ("cat (0)", "dog", "cat (2)") and preset.image_size == 64
    assert preset.default_patch_size == 16 and 8 in preset.patch_sizes and preset.is_downloaded
    result = vit_demo.explore(PHOTO, "someone/cats")
    np.testing.assert_allclose(result.logits, expected_logits(published.model, preset), atol=1e-4)
    assert result.grid == (4, 4) and result.top(1)[0][0] in preset.labels
    assert hub.gets("model.safetensors") == 1 and hub.gets("config.json") == 1
    assert vit_demo.explore(PHOTO, "someone/cats", patch_size=8).grid == (8, 8)


def test_a_revision_may_be_named(hub, published):
    hub.repositories["someone/cats"] = published.files
    assert find_preset("someone/cats@main").revision == find_preset("someone/cats").revision == COMMIT
    with pytest.raises(CheckpointError, match="no revision 'v2'"):
        find_preset("someone/cats@v2")


def test_weights_that_were_saved_anew_are_loaded_anew(timm_folder, published):
    before = vit_demo.explore(PHOTO, str(timm_folder))
    state = {name: tensor + 0.01 for name, tensor in published.model.state_dict().items()}
    save_file(state, timm_folder / "model.safetensors")
    after = vit_demo.explore(PHOTO, timm_folder)
    assert not np.allclose(after.logits, before.logits, atol=1e-3)
    np.testing.assert_allclose(after.logits, vit_demo.load(timm_folder)(after.pixels).detach()[0], atol=1e-5)


def test_a_relative_path_is_that_of_the_working_folder(timm_folder, published, tmp_path, monkeypatch):
    other = tmp_path / "elsewhere"
    shutil.copytree(timm_folder, other / timm_folder.name)
    save_file(
        {k: v + 0.01 for k, v in published.model.state_dict().items()}, other / timm_folder.name / "model.safetensors"
    )
    logits = []
    for place in (timm_folder.parent, other):
        monkeypatch.chdir(place)
        logits.append(vit_demo.explore(PHOTO, f"./{timm_folder.name}").logits)
    assert not np.allclose(*logits, atol=1e-3)


def test_a_transformers_folder_as_save_pretrained_writes_it(tmp_path, randomise):
    config = transformers.ViTConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=32, patch_size=8,
        id2label={i: f"thing {i}" for i in range(12)}, layer_norm_eps=1e-3,
    )  # fmt: skip
    theirs = randomise(transformers.ViTForImageClassification(config))
    theirs.save_pretrained(tmp_path)
    transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, image_mean=[0.1, 0.2, 0.3], image_std=[0.3, 0.2, 0.1], resample=3
    ).save_pretrained(tmp_path)
    preset = find_preset(str(tmp_path))
    assert preset.labels == tuple(f"thing {i}" for i in range(12))
    assert (preset.mean, preset.std, preset.interpolation) == ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), "bicubic")
    assert preset.num_heads == 3 and preset.num_blocks == 2
    np.testing.assert_allclose(
        vit_demo.explore(PHOTO, str(tmp_path)).logits, expected_logits(theirs, preset), atol=1e-4
    )


def test_a_distilled_deit_keeps_its_second_head(tmp_path, randomise):
    config = transformers.DeiTConfig(
        hidden_size=48, num_hidden_layers=1, num_attention_heads=3, intermediate_size=96, image_size=32, patch_size=8,
        num_labels=4,
    )  # fmt: skip
    theirs = randomise(transformers.DeiTForImageClassificationWithTeacher(config))
    theirs.save_pretrained(tmp_path)
    result = vit_demo.explore(PHOTO, str(tmp_path))
    np.testing.assert_allclose(result.logits, expected_logits(theirs, find_preset(str(tmp_path))), atol=1e-4)


def test_weights_in_half_precision_become_float32(timm_folder, published):
    save_file({k: v.half() for k, v in published.model.state_dict().items()}, timm_folder / "model.safetensors")
    assert {p.dtype for p in vit_demo.load(str(timm_folder)).parameters()} == {torch.float32}


def test_quantised_weights_are_refused(timm_folder, published):
    save_file({k: v.to(torch.int8) for k, v in published.model.state_dict().items()}, timm_folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="holds I8"):
        find_preset(str(timm_folder))


def timm_config(**changes: Any) -> dict[str, Any]:
    return {"architecture": "vit_base_patch16_224", "num_classes": 1000, **changes}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (timm_config(architecture="resnet50"), "'resnet50' is not supported"),
        (timm_config(architecture="vit_base_r50_s16_224"), "not supported"),
        (timm_config(model_args={"act_layer": "quick_gelu"}), "created with 'act_layer'"),
        (timm_config(global_pool=""), "global_pool"),
        (timm_config(pretrained_cfg={"input_size": [3, 224, 160]}), "224 x 160, not a square"),
        ({"model_type": "swin"}, "type 'swin' is not supported"),
        ({"model_type": "vit", "hidden_act": "mish"}, "hidden_act .* must be one of"),
        ({"model_type": "vit", "problem_type": ["x"]}, "problem_type in its config.json must be text"),
        ({"model_type": "vit", "image_size": [224, 160]}, "224 x 160, not a square"),
        ({}, "has neither timm's architecture nor"),
    ],
)
def test_unsupported_parts_are_named(timm_folder, config, message):
    (timm_folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(PresetError, match=message) as refused:
        find_preset(str(timm_folder))
    assert str(timm_folder) in str(refused.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "has no config.json"),
        ("model.safetensors", None, "pickled weights .* are never opened"),
        ("model.safetensors", b"nonsense", "damaged"),
    ],
)
def test_unusable_files_are_named(timm_folder, file, content, message):
    if content is None:
        (timm_folder / file).unlink()
    else:
        (timm_folder / file).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        find_preset(str(timm_folder))


@pytest.mark.parametrize("name", ["", " ", "/nowhere/at/all", "../nothing", "a/b/c", "not a/name"])
def test_an_invalid_name_is_refused_without_a_request(hub, name):
    with pytest.raises(PresetError):
        find_preset(name)
    assert not hub.seen
