import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import BUNDLED, load_checkpoint, load_model, read_record, save_checkpoint

PRESET = PRESETS["digits-notebook"]


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    model = ViT(PRESET.config_at(4))
    path = tmp_path / "digits-notebook-4.safetensors"
    save_checkpoint(path, model, {"seed": 0, "test_accuracy": {"4": 0.5}})
    return path, model


def test_a_saved_network_is_read_back_in_eval_mode(saved):
    path, model = saved
    loaded, record = load_checkpoint(path)
    assert record == {"seed": 0, "test_accuracy": {"4": 0.5}}
    assert not loaded.training and not any(p.requires_grad for p in loaded.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.half().float())


def test_dropout_is_not_saved(tmp_path):
    model = ViT(replace(PRESET.config_at(4), dropout=0.25, drop_path=0.25))
    save_checkpoint(tmp_path / "some.safetensors", model, {})
    config = load_checkpoint(tmp_path / "some.safetensors")[0].config
    assert config.dropout == 0 and config.drop_path == 0


def test_load_model_sets_the_patch_size(saved):
    path, _ = saved
    assert load_model(PRESET, 4, path.parent).patch_size == 4


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="missing"):
        load_model(PRESET, 4, tmp_path)


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "damaged"),
        (flip_a_bit, "changed"),
        (lambda path: save_file(load_file(path), path), "not written by vit_demo"),
        (lambda path: save_file({"a": torch.tensor(1.0)}, path, {"format": "vit_demo"}), "changed after training"),
    ],
    ids=["truncated", "a flipped bit", "no header", "a single number"],
)
def test_a_damaged_file_is_refused(saved, damage, message):
    path, _ = saved
    damage(path)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


def test_weights_of_another_network_or_size_are_refused(saved):
    path, _ = saved
    shutil.copy(path, path.with_name("digits-notebook-7.safetensors"))
    save_checkpoint(path, ViT(replace(PRESET.config, depth=1)), {})
    for patch_size in (4, 7):
        with pytest.raises(CheckpointError, match="another network"):
            load_model(PRESET, patch_size, path.parent)


def config_with(**changes):
    return json.dumps({**PRESET.config_at(4).to_dict(), **changes})


NESTED = "[" * 10_000 + "]" * 10_000
BROKEN_HEADERS = [
    ("format", None, "not written by vit_demo"),
    ("digest", None, "changed after training"),
    ("config", None, "holds no valid config"),
    ("config", "{", "holds no valid config"),
    ("config", NESTED, "holds no valid config"),
    ("config", "[]", "holds no valid config"),
    ("config", config_with(colour="red"), "holds no valid config"),
    ("config", config_with(num_heads=0), "holds no valid config"),
    ("config", config_with(depth="2"), "holds no valid config"),
    ("config", config_with(depth=10**9), "holds no valid config"),
    ("config", config_with(mlp_ratio=10**400), "holds no valid config"),
    ("config", config_with(embed_dim=10**400, num_heads=1), "holds no valid config"),
    ("config", config_with(depth=3), "do not match their header"),
    ("record", None, "holds no training record"),
    ("record", "{", "holds no training record"),
    ("record", "[]", "holds no training record"),
    ("record", NESTED, "holds no training record"),
]


@pytest.mark.parametrize(("field", "value", "message"), BROKEN_HEADERS, ids=range(len(BROKEN_HEADERS)))
def test_a_broken_header_is_refused(saved, field, value, message):
    path, _ = saved
    with safe_open(path, "pt") as file:
        header = file.metadata()
    header.pop(field)
    save_file(load_file(path), path, header if value is None else {**header, field: value})
    with pytest.raises(CheckpointError, match=message) as refused:
        load_checkpoint(path)
    assert str(path.parent) not in str(refused.value) and len(str(refused.value)) < 200
    assert read_record(PRESET, 4, path.parent) == (
        {} if field == "record" else {"seed": 0, "test_accuracy": {"4": 0.5}}
    )


@pytest.mark.parametrize("content", [None, b"", b"x" * 100, b"\xff" * 8])
def test_a_record_that_cannot_be_read_is_empty(tmp_path, content):
    if content is not None:
        (tmp_path / "digits-notebook-4.safetensors").write_bytes(content)
    assert read_record(PRESET, 4, tmp_path) == {}


def test_only_bundled_presets_have_a_record(saved):
    path, _ = saved
    assert read_record(replace(PRESET, source="folder", name=str(path.with_suffix(""))), 4) == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_weights_that_are_not_finite_are_refused(saved, value):
    """1e30 is infinite in half precision."""
    path, model = saved
    with torch.no_grad():
        model.head.bias[3] = value
    save_checkpoint(path, model, {})
    with pytest.raises(CheckpointError, match=r"not finite in 'head\.bias'"):
        load_checkpoint(path)


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.is_bundled])
def test_every_bundled_preset_is_trained(name):
    """Every bundled preset has weights, and a record with its accuracy."""
    preset = PRESETS[name]
    for patch_size in preset.patch_sizes:
        load_model(preset, patch_size)
        _, record = load_checkpoint(BUNDLED / f"{preset.checkpoint_name(patch_size)}.safetensors")
        assert record["test_accuracy"][str(patch_size)] > 2 / len(preset.labels)
        commands = ("python -m recipes train", "python -m vit_demo train", "python -m vit_demo.training.average")
        assert record["command"].startswith(commands)
        assert {"seed", "epochs", "seconds", "data"} <= record.keys()
