"""Safetensors files that hold no supported network: one clear sentence, never a traceback."""

from __future__ import annotations

import pytest
import timm
import torch
from safetensors.torch import load, save, save_file

from vit_demo.weights import find_preset, limits, load_model

from .model_folder import INFINITY, NAN, WEIGHTS_FILE, assert_refused, edit_weights, set_field, write_files


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop("blocks.0.norm1.bias"), r"norm1\.bias is missing"),
        (lambda t: t.pop("head.bias"), r"head\.bias is missing"),
        (lambda t: t.pop("patch_embed.proj.bias"), r"proj\.bias is missing"),
        (lambda t: t.update({"head_dist.weight": t["head.weight"].clone()}), r"head_dist\.bias is missing"),
        (lambda t: t.update({"head_dist.weight": torch.zeros(2, 3), "head_dist.bias": torch.zeros(3)}), "differ"),
        (
            lambda t: t.update({"head_dist.weight": torch.zeros(3), "head_dist.bias": torch.zeros(3)}),
            "a ViT has 2",
        ),
        (lambda t: t.update(pos_embed=torch.zeros(17)), "a ViT has 3"),
        (lambda t: t.update(pos_embed=torch.zeros(1, 17, 5)), "pos_embed is"),
        (lambda t: t.update(reg_token=torch.zeros(4)), "a ViT has 3"),
        (lambda t: t.update(reg_token=torch.zeros(1, 65, 192), pos_embed=torch.zeros(1, 82, 192)), "65 registers"),
        (lambda t: t.update({"head.weight": torch.zeros(3)}), "a ViT has 2"),
        (lambda t: t.update({"head.weight": torch.zeros(25_001, 192)}), "25,001 classes"),
        (lambda t: t.update({"blocks.0.mlp.fc1.weight": torch.zeros(3)}), "a ViT has 2"),
        (lambda t: t.update({"blocks.0.mlp.fc1.weight": torch.zeros(4000, 192)}), "its width in the MLP"),
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
        (dict.clear, "not the weights of a plain"),
    ],
)
def test_weights_that_are_no_networks(timm_folder, edit, message):
    edit_weights(timm_folder, edit)
    assert_refused(timm_folder, message)


def test_queries_and_keys_of_different_shapes(transformers_folder):
    tensors = load((transformers_folder / WEIGHTS_FILE).read_bytes())
    key = next(name for name in tensors if "key.weight" in name or "k_proj.weight" in name)
    edit_weights(transformers_folder, lambda t: t.update({key: torch.zeros(24, 5)}))
    assert_refused(transformers_folder, "the shapes of .* differ")


def test_a_large_header_is_refused_before_it_is_parsed(timm_folder):
    header = b"{" + b" " * (limits.MAX_HEADER_BYTES + 10) + b"}"
    (timm_folder / WEIGHTS_FILE).write_bytes(len(header).to_bytes(8, "little") + header)
    assert_refused(timm_folder, "The header of model.safetensors has 1.0 MB")


def test_too_many_tensors_are_refused(timm_folder):
    save_file({f"a{i}": torch.zeros(1) for i in range(limits.MAX_TENSORS + 1)}, timm_folder / WEIGHTS_FILE)
    assert_refused(timm_folder, "holds 5,001 tensors")


def test_a_hidden_width_that_no_ratio_hits_exactly_is_read(tmp_path, published):
    assert int(11 * (15 / 11)) == 14, "in floating point"
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=16, embed_dim=11, depth=1, num_heads=1, mlp_ratio=15.5 / 11, num_classes=3
    )
    write_files(tmp_path, {**published.files, WEIGHTS_FILE: save(model.state_dict())})
    set_field(tmp_path / "config.json", "model_args", "num_heads", value=1)
    assert load_model(find_preset(str(tmp_path))).blocks[0].mlp.fc1.out_features == 15
