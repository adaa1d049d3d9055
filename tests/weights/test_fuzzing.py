"""Random values in configs and random tensors: a model is loaded, or refused with one sentence."""

import functools
import json
import os
import random
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load, save

from vit_demo.inference.inputs import ModelInput
from vit_demo.weights import find_preset
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.hub import repository

from .model_folder import INFINITY, NAN, REFUSALS, WEIGHTS_FILE, set_field, write_files

ROUNDS = int(os.environ.get("VIT_DEMO_EXAMPLES", "40"))
ANYTHING = [
    None, True, False, 0, -1, 1, 2, 3, 8, 64, 1.5, -0.0, 1e308, NAN, INFINITY, 10**30, "", "x", "2", "\u202e\ud800",
    "bicubic", [], [1], [3, 224], [0.5] * 3, [3, 64, 64], ["a", "b", "c"], {}, {"0": 1}, {"0": "a"}, {"height": 3},
    {"shortest_edge": 1}, [[[[[]]]]], {"a": {"b": {}}},
]  # fmt: skip


def paths_of(content: dict[str, Any]) -> list[tuple[str, ...]]:
    inner = [(key, *rest) for key, value in content.items() if isinstance(value, dict) for rest in paths_of(value)]
    return [(key,) for key in content] + inner


@pytest.mark.parametrize("style", ["timm", "transformers"])
def test_any_value_in_any_field_is_read_or_refused(tmp_path, published, transformers_files, style):
    files = published.files if style == "timm" else transformers_files
    rng = random.Random(0)
    fields = [(name, path) for name in files if name != WEIGHTS_FILE for path in paths_of(json.loads(files[name]))]
    if style == "timm":
        fields += [("config.json", ("model_args", key)) for key in ("num_heads", "global_pool", "class_token")]
        fields += [("config.json", ("pretrained_cfg", key)) for key in ("crop_mode", "num_classes", "label_names")]
    photo = Image.fromarray(np.zeros((40, 50, 3), np.uint8))
    read = 0
    for _ in range(ROUNDS):
        write_files(tmp_path, files)
        for name, path in rng.sample(fields, rng.choice((1, 1, 2))):
            set_field(tmp_path / name, *path, value=rng.choice(ANYTHING))
        try:
            preset = find_preset(str(tmp_path))
        except REFUSALS as error:
            assert str(error).isprintable() and len(str(error)) < 500
            continue
        read += 1
        given = ModelInput.of(photo, preset, preset.default_patch_size, "crop")
        with torch.inference_mode():  # not by an engine, which reads the folder again and collects garbage each time
            assert load_model(preset)(given.pixels).isfinite().all()
        assert all(label.isprintable() for label in preset.labels)
    assert 0.08 * ROUNDS < read < 0.92 * ROUNDS, "both must be seen"


@pytest.fixture
def outlined_once(monkeypatch):
    """Where the config stays the same, so does what is found in it, which takes longer than all that follows."""
    outlined = functools.cache(lambda config, *rest, **how: plain(json.loads(config), *rest, **how))
    plain = repository.bounded_outline
    once = lambda config, *rest, **how: outlined(json.dumps(config), *rest, **how)  # noqa: E731
    monkeypatch.setattr(repository, "bounded_outline", once)


@pytest.mark.parametrize("style", ["timm", "transformers"])
def test_any_tensors_are_read_or_refused(tmp_path, published, transformers_files, outlined_once, style):
    files = published.files if style == "timm" else transformers_files
    original = load(files[WEIGHTS_FILE])
    rng = random.Random(1)
    shapes = [(), (1,), (3,), (3, 3), (1, 1, 1), (1, 17, 192), (192, 3, 16, 16), (1, 2, 3, 4, 5), (10_000,), (0, 3)]
    others = [
        "cls_token",
        "reg_token",
        "dist_token",
        "head_dist.weight",
        "head_dist.bias",
        "blocks.1.norm1.weight",
        "x",
    ]
    for _ in range(ROUNDS):
        tensors = dict(original)
        for _ in range(rng.choice((1, 1, 2, 3))):
            name = rng.choice([*tensors, *others])
            if rng.random() < 0.3:
                tensors.pop(name, None)
            elif rng.random() < 0.3 and name in tensors:
                tensors[rng.choice([*original, *others])] = tensors.pop(name)
            else:
                tensors[name] = torch.zeros(rng.choice(shapes))
        write_files(tmp_path, files | {WEIGHTS_FILE: save({name: tensor.clone() for name, tensor in tensors.items()})})
        try:
            find_preset(str(tmp_path))  # which loads them
        except REFUSALS as error:
            assert str(error).isprintable() and len(str(error)) < 500


def test_any_damage_to_the_weights_is_refused(timm_folder, outlined_once):
    content = (timm_folder / WEIGHTS_FILE).read_bytes()
    rng = random.Random(2)
    for _ in range(ROUNDS):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 3, 10))):
            damaged[rng.randrange(3000)] = rng.randrange(256)
        (timm_folder / WEIGHTS_FILE).write_bytes(damaged[: rng.choice((None, 7, 100, 5000))])
        try:
            find_preset(str(timm_folder))
        except REFUSALS as error:
            assert str(error).isprintable()
