"""Folders of models that are changed on purpose, and the check that they are refused with one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
from safetensors.torch import load, save, save_file
from torch import Tensor

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import find_preset
from vit_demo.weights.checkpoints import load_model

WEIGHTS_FILE = "model.safetensors"
NAN, INFINITY = float("nan"), float("inf")
REFUSALS = (PresetError, CheckpointError)
PREPROCESSOR: dict[str, Any] = {
    "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5], "do_center_crop": True, "crop_size": {"height": 28, "width": 28},
    "size": {"shortest_edge": 32}, "resample": 2,
}  # fmt: skip


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    """Writes the files of a model into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def set_field(path: Path, *keys: str, value: Any) -> None:
    """Sets a field deep in a JSON file."""
    content = inner = json.loads(path.read_bytes())
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):  # it was changed before
            return
    inner[keys[-1]] = value
    path.write_text(json.dumps(content))


def edit_weights(folder: Path, edit: Callable[[dict[str, Tensor]], object]) -> None:
    """Changes the tensors of a model."""
    tensors = load((folder / WEIGHTS_FILE).read_bytes())
    edit(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS_FILE)


def assert_refused(folder: Path, message: str | None = None) -> str:
    """Asserts that a model is refused with one plain sentence, and returns that."""
    with pytest.raises(REFUSALS, match=message) as error:
        load_model(find_preset(str(folder)))
    sentence = str(error.value).replace(str(folder), "FOLDER")
    assert "\n" not in sentence and len(sentence) < 400 and sentence.endswith(".") and sentence.isprintable()
    return sentence


def timm_files(image_size: int = 64, patch_size: int = 16, **changes: Any) -> dict[str, bytes]:
    """A tiny timm ViT, as ``save_for_hf`` writes it."""
    shape = {"img_size": image_size, "patch_size": patch_size, "embed_dim": 3, "depth": 1, "num_heads": 3} | changes
    model = timm.create_model("vit_tiny_patch16_224", num_classes=2, **shape)
    config = {"architecture": "vit_tiny_patch16_224", "num_classes": 2, "model_args": shape}
    return {"config.json": json.dumps(config).encode(), WEIGHTS_FILE: save(model.state_dict())}
