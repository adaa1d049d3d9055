"""Repositories that are broken or hostile: one clear sentence, never a traceback, and never a long wait."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
import pytest
import timm
import torch
import transformers
from PIL import Image
from safetensors.torch import load, save, save_file

import vit_demo
from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import find_preset, limits, load_model

WEIGHTS = "model.safetensors"
NAN, INFINITY = float("nan"), float("inf")
REFUSED = (PresetError, CheckpointError)
PREPROCESSOR: dict[str, Any] = {
    "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5], "do_center_crop": True, "crop_size": {"height": 28, "width": 28},
    "size": {"shortest_edge": 32}, "resample": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def transformers_files():
    """A small transformers ViT, as ``save_pretrained`` writes it."""
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=48, image_size=32, patch_size=8,
        id2label={i: f"thing {i}" for i in range(4)},
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    return {
        "config.json": json.dumps(config.to_dict()).encode(),
        "preprocessor_config.json": json.dumps(PREPROCESSOR).encode(),
        WEIGHTS: save(model.state_dict()),
    }


@pytest.fixture
def timm_folder(tmp_path, published):
    return put(tmp_path, published.files)


@pytest.fixture
def transformers_folder(tmp_path, transformers_files):
    return put(tmp_path, transformers_files)


def put(folder, files):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def change(path, *keys, value):
    """Sets a field deep in a JSON file."""
    content = inner = json.loads(path.read_bytes())
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):  # it was changed before
            return
    inner[keys[-1]] = value
    path.write_text(json.dumps(content))


def refused(folder, says=None):
    """Asserts that one plain sentence is said, and gives it."""
    with pytest.raises(REFUSED, match=says) as error:
        load_model(find_preset(str(folder)))
    sentence = str(error.value).replace(str(folder), "FOLDER")
    assert "\n" not in sentence and len(sentence) < 400 and sentence.endswith(".") and sentence.isprintable()
    return sentence


NOT_WHOLE = [0, -2, "2", None, True, 2.5, 10**30, [3], {}, NAN]
NOT_NUMBERS = ["x", True, NAN, INFINITY, -1, 1e9, [], {}]
NOT_CHANNELS = [[0.5, 0.5], [0.5] * 4, ["a", "b", "c"], [NAN] * 3, [INFINITY] * 3, 0.5, "x", {}, [None] * 3, [[]] * 3]


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
@pytest.mark.parametrize("key", ["num_attention_heads", "image_size"])
def test_transformers_whole_numbers(transformers_folder, key, value):
    change(transformers_folder / "config.json", key, value=value)
    refused(transformers_folder, f"the {key} in its config.json must be")


@pytest.mark.parametrize(("key", "value"), [("num_heads", v) for v in NOT_WHOLE] + [("img_size", 0), ("img_size", "2")])
def test_timm_whole_numbers(timm_folder, key, value):
    change(timm_folder / "config.json", "model_args", key, value=value)
    refused(timm_folder, f"the {key} in its config.json must be")


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (("layer_norm_eps",), [*NOT_NUMBERS, None]),
        (("model_type",), [None, 3, [], {}, True, "swin", "x" * 10_000, "\u202eevil\n"]),
        (("hidden_act",), [None, 3, [], {}]),
        (("architectures",), ["x", {}, [1], 3]),
        (("id2label",), [[], "x", {"a": "x"}, {"0": 3}, {"0": None}, {"1": "x"}, {"00": "x"}, {"0": ["x"]}, 3]),
        (("image_size",), [[32], [32, 32, 32], [32, "32"], [0, 0], [32, 64]]),
        (("use_swiglu_ffn",), [1, "yes", None, True]),
    ],
)
def test_transformers_config(transformers_folder, keys, values):
    whole = (transformers_folder / "config.json").read_bytes()
    for value in values:
        (transformers_folder / "config.json").write_bytes(whole)
        change(transformers_folder / "config.json", *keys, value=value)
        assert len(refused(transformers_folder)) < 300


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (("image_mean",), NOT_CHANNELS),
        (("image_std",), [*NOT_CHANNELS, [0, 0, 0], [-1, 1, 1], [1e-30] * 3]),
        (("resample",), [99, -1, "2", True, 2.0, [], {}]),
        (("rescale_factor",), NOT_NUMBERS),
        (("do_rescale",), [1, "true", []]),
        (("do_normalize",), [0, "false", {}]),
        (("do_center_crop",), [1, "x"]),
        (("crop_size",), [0, "x", True, [28, 28], {"height": 0}, {"height": "28"}, {"width": 28}, {"height": 1}]),
        (("size",), [0, -3, "x", True, {"shortest_edge": 0}, {"height": []}, {"longest": 3}]),
    ],
)
def test_transformers_preprocessor(transformers_folder, keys, values):
    for value in values:
        put(transformers_folder, {"preprocessor_config.json": json.dumps(PREPROCESSOR).encode()})
        change(transformers_folder / "preprocessor_config.json", *keys, value=value)
        refused(transformers_folder)


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (("architecture",), [3, [], {}, True, "resnet50", "x" * 100_000, "vit_\u202e\n"]),
        (("num_classes",), [-1, "3", 2.0, True, [], 10**9]),
        (("label_names",), ["abc", {"0": "a"}, [1, 2, 3], [None] * 3, [["a"]] * 3, 3]),
        (("global_pool",), ["map", "x" * 1000, 3, []]),
        (("model_args",), [[], "x", 3]),
        (("model_args", "act_layer\n\u202e" + "x" * 1000), [1]),
        (("pretrained_cfg",), [[], "x", 3]),
        (("pretrained_cfg", "mean"), NOT_CHANNELS),
        (("pretrained_cfg", "std"), [*NOT_CHANNELS, [0, 0, 0], [1, 1, -1]]),
        (("pretrained_cfg", "crop_pct"), ["x", 0, NAN, True, -1, 1e-9, 2, []]),
        (("pretrained_cfg", "interpolation"), ["evil", 3, [], True, "BICUBIC\n"]),
        (("pretrained_cfg", "crop_mode"), ["border", 3, []]),
    ],
)
def test_timm_config(timm_folder, published, keys, values):
    for value in values:
        put(timm_folder, published.files)
        change(timm_folder / "config.json", *keys, value=value)
        refused(timm_folder)


@pytest.mark.parametrize(
    "value", [[3, 224], [3, 64, 64, 64], [3, 0, 0], ["3", "64", "64"], [3, 64, 32], 64.0, "64", {}]
)
def test_timm_input_size(timm_folder, published, value):
    change(timm_folder / "config.json", "model_args", value={"depth": 1})
    change(timm_folder / "config.json", "pretrained_cfg", "input_size", value=value)
    refused(timm_folder)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[]", "does not hold an object"),
        (b"[" * 10_000 + b"]" * 10_000, "not JSON"),
        (b'{"architecture": ' + b'{"a": ' * 10_000 + b"1" + b"}" * 10_001, "not JSON"),
        ('{"model_type": "vit"}'.encode("utf-16"), "not JSON in UTF-8"),
        (b"\xff\xfe\x00", "not JSON in UTF-8"),
        (b'{"num_classes": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"", "not JSON"),
        (b'"vit"', "does not hold an object"),
        (b'{"a": "' + b"x" * limits.MAX_JSON_BYTES + b'"}', "has more than 1.0 MB"),
    ],
    ids=["list", "nested", "nested-objects", "utf-16", "no-text", "digits", "empty", "text", "large"],
)
@pytest.mark.parametrize("file", ["config.json", "preprocessor_config.json"])
def test_files_that_are_no_json_object(transformers_folder, file, content, says):
    (transformers_folder / file).write_bytes(content)
    refused(transformers_folder, says)


def test_foreign_text_is_quoted_short_and_clean(timm_folder):
    change(timm_folder / "config.json", "architecture", value="\u202e\n\x1b[31m" + "vit" * 1000)
    assert len(refused(timm_folder)) < 250


# Weights.


def resave(folder, edit):
    tensors = load((folder / WEIGHTS).read_bytes())
    edit(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda t: t.pop("blocks.0.norm1.bias"), r"norm1\.bias is missing"),
        (lambda t: t.pop("head.bias"), r"head\.bias is missing"),
        (lambda t: t.pop("patch_embed.proj.bias"), r"proj\.bias is missing"),
        (lambda t: t.update({"head_dist.weight": t["head.weight"].clone()}), r"head_dist\.bias is missing"),
        (lambda t: t.update({"head_dist.weight": torch.zeros(2, 3), "head_dist.bias": torch.zeros(3)}), "differ"),
        (lambda t: t.update({"head_dist.weight": torch.zeros(3), "head_dist.bias": torch.zeros(3)}), "2 dimensions"),
        (lambda t: t.update(pos_embed=torch.zeros(17)), "3 dimensions"),
        (lambda t: t.update(pos_embed=torch.zeros(1, 17, 5)), "pos_embed is"),
        (lambda t: t.update(reg_token=torch.zeros(4)), "3 dimensions"),
        (lambda t: t.update(reg_token=torch.zeros(1, 65, 192), pos_embed=torch.zeros(1, 82, 192)), "65 registers"),
        (lambda t: t.update({"head.weight": torch.zeros(3)}), "2 dimensions"),
        (lambda t: t.update({"head.weight": torch.zeros(25_001, 192)}), "25,001 classes"),
        (lambda t: t.update({"blocks.0.mlp.fc1.weight": torch.zeros(3)}), "2 dimensions"),
        (lambda t: t.update({"blocks.0.mlp.fc1.weight": torch.zeros(4000, 192)}), "in its MLP"),
        (lambda t: t.update({"patch_embed.proj.weight": torch.zeros(192, 0, 16, 16)}), "which no ViT has"),
        (lambda t: t.update({"cls_token": torch.zeros(1, 1, 5), "pos_embed": torch.zeros(1, 17, 192)}), "cls_token is"),
        (lambda t: t.update({"blocks.": torch.zeros(1)}), "is not supported"),
        (lambda t: t.update({"blocks.0.attn.q.weight": torch.zeros(1)}), "no such part"),
        (lambda t: t.update(dist_token=torch.zeros(1, 1, 192), reg_token=torch.zeros(1, 1, 192)), "two tensors"),
        (lambda t: t.update({"\u202e\n" + "x" * 150: torch.zeros(1)}), "no such part"),
        (lambda t: t.update({"x": torch.zeros((1,) * 20)}), "which no ViT has"),
        (lambda t: t["head.bias"].fill_(NAN), "not finite in 'head.bias'"),
        (lambda t: t["blocks.0.attn.qkv.weight"][5, 5].fill_(-INFINITY), "not finite"),
        (lambda t: t.update({"norm.bias": torch.full((192,), 1e300, dtype=torch.float64)}), "not finite"),
        (dict.clear, "not a plain Vision Transformer"),
    ],
)
def test_weights_that_are_no_networks(timm_folder, edit, says):
    resave(timm_folder, edit)
    refused(timm_folder, says)


def test_queries_and_keys_of_different_shapes(transformers_folder):
    tensors = load((transformers_folder / WEIGHTS).read_bytes())
    key = next(name for name in tensors if "key.weight" in name or "k_proj.weight" in name)
    resave(transformers_folder, lambda t: t.update({key: torch.zeros(24, 5)}))
    refused(transformers_folder, "differ in shape")


def test_a_large_header_is_refused_before_it_is_parsed(timm_folder):
    header = b"{" + b" " * (limits.MAX_HEADER_BYTES + 10) + b"}"
    (timm_folder / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)
    refused(timm_folder, "The header of model.safetensors has 1.0 MB")


def test_too_many_tensors_are_refused(timm_folder):
    save_file({f"a{i}": torch.zeros(1) for i in range(limits.MAX_TENSORS + 1)}, timm_folder / WEIGHTS)
    refused(timm_folder, "holds 5,001 tensors")


def test_a_hidden_width_that_no_ratio_hits_exactly_is_read(tmp_path, published):
    assert int(11 * (15 / 11)) == 14, "in floating point"
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=16, embed_dim=11, depth=1, num_heads=1, mlp_ratio=15.5 / 11, num_classes=3
    )
    put(tmp_path, {**published.files, WEIGHTS: save(model.state_dict())})
    change(tmp_path / "config.json", "model_args", "num_heads", value=1)
    assert load_model(find_preset(str(tmp_path))).blocks[0].mlp.fc1.out_features == 15


# What takes long.


def vit_folder(image_size=64, patch_size=16, **changes):
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=image_size, patch_size=patch_size, **{"embed_dim": 3, "depth": 1, "num_heads": 3, "num_classes": 2}
        | changes,
    )  # fmt: skip
    config = {"architecture": "vit_tiny_patch16_224", "model_args": {"img_size": image_size}}
    return {"config.json": json.dumps(config).encode(), WEIGHTS: save(model.state_dict())}


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ({"image_size": 512, "patch_size": 1, "embed_dim": 3}, "512 x 512 patches: choose one with at most 60"),
        ({"image_size": 61, "patch_size": 1}, "61 x 61 patches"),
        ({"image_size": 128, "patch_size": 64}, "patches have 64 px"),
    ],
)
def test_networks_that_would_keep_a_page_busy_are_refused_to_visitors(hub, tmp_path, shape, says):
    hub.repositories["someone/large"] = files = vit_folder(**shape)
    with pytest.raises(PresetError, match=says):
        find_preset("someone/large", trusted=False)
    assert find_preset(str(put(tmp_path, files))).config.depth  # whose computer it is may wait


@pytest.mark.parametrize("limit", ["MAX_FORWARD_FLOPS", "MAX_TRACE_BYTES", "MAX_PARAMETERS"])
def test_each_cost_of_a_network_is_bounded_for_visitors(hub, published, monkeypatch, limit):
    hub.repositories["someone/cats"] = published.files
    monkeypatch.setattr(limits, limit, 10_000)
    with pytest.raises(PresetError, match="too much time or memory"):
        find_preset("someone/cats", trusted=False)


def test_patch_sizes_that_a_page_cannot_afford_are_not_offered(hub, tmp_path):
    hub.repositories["someone/coarse"] = vit_folder(image_size=96, patch_size=32)
    assert find_preset("someone/coarse").patch_sizes == (16, 24, 32, 48, 96)
    assert find_preset("someone/coarse", trusted=False).patch_sizes == (16, 24, 32, 48)


@pytest.mark.parametrize(
    ("shape", "cheap", "dear"),
    [
        ({"embed_dim": 768, "num_heads": 12}, 8, 2),  # ViT-B
        ({"embed_dim": 1024, "num_heads": 16, "depth": 24}, 8, 4),  # ViT-L
        ({"embed_dim": 1024, "num_heads": 16, "depth": 24, "image_size": 518, "patch_size": 14}, 14, 7),  # DINOv2-L
        ({"embed_dim": 1280, "num_heads": 16, "depth": 32, "patch_size": 14}, 14, 7),  # ViT-H
    ],
)
def test_public_networks_are_affordable_where_they_are_native(shape, cheap, dear):
    config = vit_demo.model.ViTConfig(**shape)
    limits.check_network(config)
    assert limits.is_affordable(config, cheap) and not limits.is_affordable(config, dear)


def test_5000_empty_blocks_are_refused_at_once(timm_folder):
    resave(timm_folder, lambda t: t.update({f"blocks.{i}.x": torch.zeros(1) for i in range(1, 4900)}))
    started = time.monotonic()
    refused(timm_folder, "4,900 blocks: choose one with at most 64")
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("style", ["all alike", "all different"])
def test_20000_labels_are_read_at_once(tmp_path, style):
    count = 20_000
    files = vit_folder(num_classes=count)
    config = json.loads(files["config.json"])
    config["label_names"] = [f"label {i if style == 'all different' else 0}" for i in range(count)]
    put(tmp_path, files | {"config.json": json.dumps(config).encode()})
    started = time.monotonic()
    labels = find_preset(str(tmp_path)).labels
    assert time.monotonic() - started < 3
    assert len(set(labels)) == len(labels) == count


def test_a_tensors_name_cannot_stall_the_search_for_unsupported_parts(timm_folder):
    """A pattern that looks ahead from each of n places takes n * n steps."""
    resave(timm_folder, lambda t: t.update({"embeddings." * 60_000: torch.zeros(1)}))
    started = time.monotonic()
    refused(timm_folder, "which no ViT has")
    assert time.monotonic() - started < 3


# Labels.


def test_labels_are_cleaned_and_told_apart(timm_folder):
    change(timm_folder / "config.json", "label_names", value=["cat", "ca\u202et", "cat (0)"])
    assert find_preset(str(timm_folder)).labels == ("cat (0) (0)", "cat (1)", "cat (0)")
    change(timm_folder / "config.json", "label_names", value=["a\n\x00b\u2028c", "\ud800", "x" * 5000])
    labels = find_preset(str(timm_folder)).labels
    assert labels[:2] == ("a b c", "class 1") and len(labels[2]) == 100
    assert all(label.isprintable() for label in labels)


# Anything at all.

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
    fields = [(name, path) for name in files if name != WEIGHTS for path in paths_of(json.loads(files[name]))]
    if style == "timm":
        fields += [("config.json", ("model_args", key)) for key in ("num_heads", "global_pool", "class_token")]
        fields += [("config.json", ("pretrained_cfg", key)) for key in ("crop_mode", "num_classes", "label_names")]
    photo = Image.fromarray(np.zeros((40, 50, 3), np.uint8))
    read = 0
    for _ in range(250):
        put(tmp_path, files)
        for name, path in rng.sample(fields, rng.choice((1, 1, 2))):
            change(tmp_path / name, *path, value=rng.choice(ANYTHING))
        try:
            preset = find_preset(str(tmp_path))
        except REFUSED as error:
            assert str(error).isprintable() and len(str(error)) < 500
            continue
        read += 1
        assert np.isfinite(vit_demo.explore(photo, str(tmp_path)).logits).all()
        assert all(label.isprintable() for label in preset.labels)
    assert 20 < read < 230, "both must be seen"


@pytest.mark.parametrize("style", ["timm", "transformers"])
def test_any_tensors_are_read_or_refused(tmp_path, published, transformers_files, style):
    files = published.files if style == "timm" else transformers_files
    whole = load(files[WEIGHTS])
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
    for _ in range(150):
        tensors = dict(whole)
        for _ in range(rng.choice((1, 1, 2, 3))):
            name = rng.choice([*tensors, *others])
            if rng.random() < 0.3:
                tensors.pop(name, None)
            elif rng.random() < 0.3 and name in tensors:
                tensors[rng.choice([*whole, *others])] = tensors.pop(name)
            else:
                tensors[name] = torch.zeros(rng.choice(shapes))
        put(tmp_path, files | {WEIGHTS: save({name: tensor.clone() for name, tensor in tensors.items()})})
        try:
            load_model(find_preset(str(tmp_path)))
        except REFUSED as error:
            assert str(error).isprintable() and len(str(error)) < 500


def test_any_damage_to_the_weights_is_refused(timm_folder):
    content = (timm_folder / WEIGHTS).read_bytes()
    rng = random.Random(2)
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 3, 10))):
            damaged[rng.randrange(3000)] = rng.randrange(256)
        (timm_folder / WEIGHTS).write_bytes(damaged[: rng.choice((None, 7, 100, 5000))])
        try:
            load_model(find_preset(str(timm_folder)))
        except REFUSED as error:
            assert str(error).isprintable()
