"""Safetensors files that hold no supported network: one clear sentence, never a traceback."""

import pytest
import torch
from safetensors.torch import load, save, save_file

from vit_demo.weights import limits

from .model_folder import INFINITY, NAN, WEIGHTS_FILE, assert_refused, edit_weights, write_files


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop("blocks.0.norm1.bias"), "'blocks.0.norm1.bias' differs"),
        (lambda t: t.update({"head_dist.weight": t["head.weight"].clone()}), "'head_dist.weight' differs"),
        (lambda t: t.update(pos_embed=torch.zeros(1, 17, 5)), "'pos_embed' differs"),
        (
            lambda t: t.update({"patch_embed.proj.weight": torch.zeros(192, 0, 16, 16)}),
            "'patch_embed.proj.weight' differs",
        ),
        (lambda t: t.update({"blocks.0.attn.q.weight": torch.zeros(1)}), "'blocks.0.attn.q.weight' differs"),
        (lambda t: t.update({"\u202e\n" + "x" * 150: torch.zeros(1)}), "differs"),
        (lambda t: t.update({"x": torch.zeros((1,) * 20)}), "which no ViT has"),
        (lambda t: t.update({"embeddings." * 60_000: torch.zeros(1)}), "which no ViT has"),
        (lambda t: t["head.bias"].fill_(NAN), "not finite in 'head.bias'"),
        (lambda t: t["blocks.0.attn.qkv.weight"][5, 5].fill_(-INFINITY), "not finite"),
        (lambda t: t.update({"norm.bias": torch.full((192,), 1e300, dtype=torch.float64)}), "not finite"),
        (dict.clear, "'blocks.0.attn.proj.bias' differs"),
    ],
)
def test_weights_that_are_not_those_of_the_config(timm_folder, edit, message):
    edit_weights(timm_folder, edit)
    assert_refused(timm_folder, message)


def test_weights_of_transformers_that_are_not_those_of_the_config(transformers_folder):
    tensors = load((transformers_folder / WEIGHTS_FILE).read_bytes())
    key = next(name for name in tensors if "key.weight" in name or "k_proj.weight" in name)
    for change in ({key: torch.zeros(24, 5)}, {"vit.other": torch.zeros(3)}, {"classifier.bias": torch.zeros(2)}):
        write_files(transformers_folder, {WEIGHTS_FILE: save(tensors | change)})
        assert_refused(transformers_folder, "do not fit its config.json")
    del tensors[key]
    write_files(transformers_folder, {WEIGHTS_FILE: save(tensors)})
    assert_refused(transformers_folder, "do not fit its config.json")


def test_a_large_header_is_refused_before_it_is_parsed(timm_folder):
    header = b"{" + b" " * (limits.MAX_HEADER_BYTES + 10) + b"}"
    (timm_folder / WEIGHTS_FILE).write_bytes(len(header).to_bytes(8, "little") + header)
    assert_refused(timm_folder, "The header of model.safetensors has 1.0 MB")


def test_too_many_tensors_are_refused(timm_folder):
    save_file({f"a{i}": torch.zeros(1) for i in range(limits.MAX_TENSORS + 1)}, timm_folder / WEIGHTS_FILE)
    assert_refused(timm_folder, "holds 5,001 tensors")
