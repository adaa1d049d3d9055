"""Fields that a ``config.json`` leaves out get the defaults of timm and of transformers."""

import pytest
import transformers
from PIL import Image
from timm.models.vision_transformer import _cfg
from vit_demo.weights.hf_config import parse_timm_config, parse_transformers_config


def test_timm_preprocessing():
    parsed = parse_timm_config({"architecture": "vit_base_patch16_224", "num_classes": 3})
    default = _cfg()  # what timm takes for any of its plain ViTs
    assert parsed.interpolation == default["interpolation"] and parsed.crop_fraction == default["crop_pct"]
    assert (parsed.mean, parsed.std) == (tuple(default["mean"]), tuple(default["std"]))
    assert parsed.hints.image_size == default["input_size"][-1]
    assert parsed.hints.pool == "cls"


@pytest.mark.parametrize(
    ("kind", "config"), [("vit", transformers.ViTConfig()), ("dinov2", transformers.Dinov2Config())]
)
def test_transformers_networks(kind, config):
    hints = parse_transformers_config({"model_type": kind}, None).hints
    assert hints.norm_eps == config.layer_norm_eps
    assert (hints.num_heads, hints.image_size) == (config.num_attention_heads, config.image_size)


def test_transformers_preprocessing():
    parsed = parse_transformers_config({"model_type": "vit"}, {})
    default = transformers.ViTImageProcessor()
    assert Image.Resampling[parsed.interpolation.upper()] == default.resample
    assert (parsed.mean, parsed.std) == (tuple(default.image_mean), tuple(default.image_std))
    assert parsed.crop_fraction == 1.0 and not default.do_center_crop


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_transformers_interpolation_is_numbered_as_in_pillow(number):
    parsed = parse_transformers_config({"model_type": "vit"}, {"resample": number})
    assert Image.Resampling[parsed.interpolation.upper()] == number
