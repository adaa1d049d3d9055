"""A shape that cannot be built is refused when it is written down, not when it is used."""

import pytest
import torch

from vit_demo.model import ViT, ViTConfig

NOT_WHOLE = [-1, 1 << 31, 2.0, "2", None, True, [2], float("nan")]
WHOLE = ["image_size", "patch_size", "in_channels", "num_classes", "embed_dim", "depth", "num_heads", "num_registers"]


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
@pytest.mark.parametrize("field", WHOLE)
def test_dimensions_are_whole_numbers(field, value):
    with pytest.raises(ValueError, match=f"{field} must be a whole number of at least"):
        ViTConfig(**{field: value})


@pytest.mark.parametrize("field", ["image_size", "patch_size", "in_channels", "embed_dim", "depth", "num_heads"])
def test_no_dimension_is_zero(field):
    with pytest.raises(ValueError, match=f"{field} must be a whole number of at least 1, not 0"):
        ViTConfig(**{field: 0})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pos_embed_grid": 0}, "pos_embed_grid must be a whole number"),
        ({"pos_embed_grid": "7"}, "pos_embed_grid must be a whole number"),
        ({"mlp_ratio": "4"}, "mlp_ratio must be a number from 0"),
        ({"mlp_ratio": -4.0}, "mlp_ratio must be a number from 0"),
        ({"mlp_ratio": 0.001}, "leaves no hidden channel"),
        ({"norm_eps": float("nan")}, "norm_eps must be a number from 0"),
        ({"norm_eps": "x"}, "norm_eps must be a number from 0"),
        ({"layer_scale": float("inf")}, "layer_scale must be a number from 0"),
        ({"layer_scale": 1.1e9}, r"layer_scale must be a number from 0 to 1e\+09"),
        ({"dropout": 1.0}, "below 1"),
        ({"drop_path": 1.0}, "below 1"),
        ({"drop_path": None}, "drop_path must be a number from 0"),
        ({"class_token": False}, "needs class_token=True"),
        ({"pool": "max"}, "pool must be one of cls, mean"),
        ({"pool": ["cls"]}, "pool must be one of cls, mean"),
        ({"pos_embed": "rotary"}, "pos_embed must be one of"),
        ({"projection": None}, "projection must be one of"),
        ({"class_token": 1}, "class_token must be True or False"),
        ({"qkv_bias": "no"}, "qkv_bias must be True or False"),
        ({"embed_dim": 10, "num_heads": 4}, "embed_dim 10 must be a multiple of num_heads 4"),
        ({"image_size": 30, "patch_size": 4}, "image_size 30 must be a multiple of patch_size 4"),
    ],
)
def test_other_fields(changes, says):
    with pytest.raises(ValueError, match=says):
        ViTConfig(**changes)


def test_what_can_be_built_is_accepted():
    ViTConfig(num_classes=0, num_registers=4, layer_scale=1e-5, pos_embed_grid=7, mlp_ratio=3, norm_eps=0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_classes": 0, "num_registers": 4, "pos_embed_prefix": False, "layer_scale": 1e-5},
        {"pool": "mean", "class_token": False, "in_channels": 1, "mlp_ratio": 2.7},
        {"pool": "cls+mean", "qkv_bias": False, "final_norm": False},
        {"pool": "cls+next", "num_registers": 1, "pos_embed_grid": 9},
        {"projection": "per_head", "pos_embed": "sincos"},
    ],
    ids=lambda changes: ",".join(changes) or "default",
)
def test_parameters_are_counted_as_in_the_network(changes):
    config = ViTConfig(**{"image_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 4, **changes})
    with torch.device("meta"):
        assert config.num_parameters == sum(p.numel() for p in ViT(config).parameters())
