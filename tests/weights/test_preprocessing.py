"""Preprocessing against each library's own transform: in memory, within wrappers, and from a folder."""

import warnings

import numpy as np
import pytest
import timm
import torch
import torchvision
import transformers
from PIL import Image
from torch import nn
from torchvision import transforms

import vit_demo
from vit_demo.images import preprocess, read_image
from vit_demo.inference.explainer import GIVEN, TRANSFORMED
from vit_demo.weights import find_preset
from vit_demo.weights.hub.preprocessing import CLIP, PREPARED, PUBLISHED, Preprocessing, preprocessing_of
from vit_demo.weights.hub.preprocessing import IMAGENET_DEFAULT as IMAGENET

from ..trace.networks import own

PICTURES = [
    Image.fromarray(np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8)).resize(
        (width, height)
    )
    for width, height in ((300, 451), (301, 222), (80, 100), (64, 64), (31, 200))
]


class Lightning(nn.Module):
    """What a training framework puts around a network."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.hparams, self.backbone = {"lr": 1e-3}, inner

    def forward(self, images):
        return self.backbone(images)


WRAPPERS = [lambda m: m, nn.DataParallel, lambda m: nn.Sequential(m, nn.Identity()), Lightning]


def prepared(known: Preprocessing, picture: Image.Image) -> torch.Tensor:
    fields = {name: getattr(known, name) for name in PREPARED}
    return preprocess(picture, image_size=known.image_size, patch_size=1, **fields)[0][0]


def levels(found: torch.Tensor, expected: torch.Tensor, std) -> torch.Tensor:
    """The differences in levels of 255."""
    assert found.shape == expected.shape
    return 255 * (found - expected).abs() * torch.tensor(std)[:, None, None]


def small_timm(**cfg) -> nn.Module:
    torch.manual_seed(0)
    module = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2, num_classes=5).eval()
    module.pretrained_cfg = {**module.pretrained_cfg, "input_size": (3, 64, 64), **cfg}
    return module


@pytest.mark.parametrize(
    ("mode", "crop", "interpolation"),
    [("center", 1.0, "bicubic"), ("center", 0.7, "bicubic"), ("squash", 0.95, "bilinear"), ("squash", 0.7, "bicubic"),
     ("border", 0.95, "bilinear"), ("border", 0.7, "bicubic")],
)  # fmt: skip
def test_timm_to_the_pixel(mode, crop, interpolation, tmp_path):
    mean, std = (0.2, 0.4, 0.6), (0.3, 0.2, 0.1)
    module = small_timm(crop_mode=mode, crop_pct=crop, interpolation=interpolation, mean=mean, std=std)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(module))
    timm.models.save_for_hf(module, tmp_path, safe_serialization=True)
    from_folder = find_preset(str(tmp_path))
    for picture in PICTURES:
        expected = transform(picture)
        assert levels(prepared(preprocessing_of(module), picture), expected, std).max() < 1e-3
        assert (
            levels(prepared(Preprocessing(image_size=64, **_fields(from_folder)), picture), expected, std).max() < 1e-3
        )
    expected = transform(PICTURES[0])
    wrappers = WRAPPERS if (mode, crop) == ("center", 0.7) else WRAPPERS[:1]
    for model in (*(wrap(module) for wrap in wrappers), str(tmp_path)):
        ex = vit_demo.explore(PICTURES[0], model)
        assert levels(ex.pixels[0], expected, std).max() < 1e-3 and ex.preprocessing.note == ""


def _fields(preset):
    return {name: getattr(preset, name) for name in PREPARED}


def test_bars_and_cuts_are_where_the_model_saw_them():
    for mode, crop in (("border", 1.0), ("border", 0.8), ("squash", 0.8)):
        ex = vit_demo.explore(PICTURES[0], small_timm(crop_mode=mode, crop_pct=crop, mean=(0.2, 0.4, 0.6)))
        mean, std = (np.array(values)[:, None, None] for values in (ex.preset.mean, ex.preset.std))
        seen = np.asarray(ex.image.resize((64, 64), Image.Resampling.BOX)).transpose(2, 0, 1) / 255
        assert np.abs(seen - (ex.pixels[0].numpy() * std + mean)).mean() < 0.06, (mode, crop)
        left, top, right, bottom = ex.geometry.box
        assert ex.geometry.mode == mode and (left < 0) == (mode == "border") and (top > 0) == (crop < 1)
        assert abs(left + right - 300) < 8 and abs(top + bottom - 451) < 8  # less than a pixel of the input


HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
OF_IMAGENET = {"image_mean": list(IMAGENET["mean"]), "image_std": list(IMAGENET["std"])}
OF_CLIP = {"image_mean": list(CLIP["mean"]), "image_std": list(CLIP["std"])}
FAMILIES = {
    # As the preprocessor_config.json of google/vit-*, microsoft/beit-* and so on say.
    "ViT": ("ViTForImageClassification", "ViTImageProcessor", {"resample": 2, **HALF}),
    "Beit": ("BeitForImageClassification", "BeitImageProcessor", {"resample": 2, "do_center_crop": False, **HALF}),
    "ViTMSN": ("ViTMSNForImageClassification", "ViTImageProcessor", {"resample": 2, **OF_IMAGENET}),
    "DINOv3ViT": ("DINOv3ViTModel", "DINOv3ViTImageProcessor", {"resample": 2, **OF_IMAGENET}),
    "DeiT": ("DeiTForImageClassification", "DeiTImageProcessor", {"size": 256, "crop_size": 224, **OF_IMAGENET}),
    "Dinov2": (
        "Dinov2ForImageClassification",
        "BitImageProcessor",
        {"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": True, **OF_IMAGENET},
    ),
    "Dinov2WithRegisters": (
        "Dinov2WithRegistersForImageClassification",
        "BitImageProcessor",
        {"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": True, **OF_IMAGENET},
    ),
    "CLIPVision": ("CLIPVisionModelWithProjection", "CLIPImageProcessor", OF_CLIP),
    "SiglipVision": ("SiglipVisionModel", "SiglipImageProcessor", {"resample": 3, **HALF}),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_within_a_level(family, tmp_path):
    name, processor_name, options = FAMILIES[family]
    processor = getattr(transformers, processor_name)(**options)
    any_size = family.startswith("Dino")
    config = getattr(transformers, f"{family}Config")(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=48, patch_size=28,
        image_size=56 if any_size else 224,  # DINOv2 and DINOv3 take what the processor gives them
    )  # fmt: skip
    torch.manual_seed(0)
    module = getattr(transformers, name)(config).eval()
    module.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    from_folder = find_preset(str(tmp_path))
    assert from_folder.assumed == "" and from_folder.image_size == 224
    in_memory = preprocessing_of(nn.Sequential(module))
    assert config.model_type in PUBLISHED and config.model_type in in_memory.note
    for picture in PICTURES:
        expected = processor(picture, return_tensors="pt")["pixel_values"][0]
        for known in (in_memory, Preprocessing(**_fields(from_folder))):
            off = levels(prepared(known, picture), expected, processor.image_std)
            # DINOv3's processor resizes numbers that are not rounded.
            assert off.max() < 2.01 and off.mean() < (0.4 if family == "DINOv3ViT" else 0.1)
    given = vit_demo.explore(picture, module, transform=processor)
    assert torch.equal(given.pixels[0], expected) and given.preprocessing.note == TRANSFORMED
    (tmp_path / "preprocessor_config.json").unlink()
    assert "published models of its type" in find_preset(str(tmp_path)).note


@pytest.mark.parametrize("name", ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"])
def test_torchvision_to_the_pixel(name):
    for weights in torchvision.models.get_model_weights(name):
        transform = weights.transforms()
        size = transform.crop_size[0]
        with torch.device("meta"):
            module = torchvision.models.get_model(name, image_size=size)
        known = preprocessing_of(nn.Sequential(module))
        is_ambiguous = weights.name == "IMAGENET1K_SWAG_LINEAR_V1" and name != "vit_h_14"
        assert known.image_size == size and ("SWAG" in known.note) == ("SWAG" in weights.name and not is_ambiguous)
        for picture in () if is_ambiguous else PICTURES:
            assert levels(prepared(known, picture), transform(picture), transform.std).max() < 1e-3


OPEN_CLIP = {"size": (48, 48), "mode": "RGB", **CLIP, "interpolation": "bicubic", "resize_mode": "shortest"}
"""What open_clip keeps in a network that it makes."""


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(
    "stated",
    [
        OPEN_CLIP,
        OPEN_CLIP | {"size": 64, "interpolation": "bilinear", "mean": [0.4, 0.5, 0.6], "fill_color": 0},
        OPEN_CLIP | {"resize_mode": "squash", "mean": (0.5,) * 3, "std": (0.5,) * 3},
        {"size": 32},
    ],
)
def test_open_clip_to_the_pixel(stated, wrapper):
    full = OPEN_CLIP | stated
    side = torch.Size(full["size"] if isinstance(full["size"], tuple) else (full["size"],) * 2)
    transform = transforms.Compose(
        [
            transforms.Resize(
                side if full["resize_mode"] == "squash" else side[0],
                interpolation=transforms.InterpolationMode(full["interpolation"]),
            ),
            transforms.CenterCrop(side),
            transforms.ToTensor(),
            transforms.Normalize(full["mean"], full["std"]),
        ]
    )
    module = small_timm()  # whose own attributes count less than what is around it
    module.preprocess_cfg = stated
    known = preprocessing_of(wrapper(module))
    assert known.image_size == side[0] and known.note == ""
    for picture in PICTURES:
        assert levels(prepared(known, picture), transform(picture), full["std"]).max() < 1e-3


def test_what_open_clip_states_and_nobody_can_use_is_said():
    module = own()
    module.image_size = (48, 48)
    assert preprocessing_of(module).image_size == 48, "the size of both sides"
    module.preprocess_cfg = OPEN_CLIP | {"resize_mode": "longest"}
    known = preprocessing_of(module)
    assert not known.is_known and "resize_mode in its preprocess_cfg must be one of shortest, squash" in known.note
    module.preprocess_cfg = OPEN_CLIP | {"size": (48, 64)}
    assert "48 x 64, not a square" in preprocessing_of(module).note


def test_what_is_not_known_is_said_once():
    module = own()
    module.image_size = 32
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        for _ in range(3):
            ex = vit_demo.explore(PICTURES[0], module)
        warnings.simplefilter("always")
        vit_demo.Explainer(module)(PICTURES[0])
    *heard, by_explainer = heard
    assert by_explainer.filename == __file__
    assert [str(one.message) for one in heard] == [ex.preprocessing.note] and heard[0].filename == __file__
    assert "32 pixels, the central square, bicubic, and ImageNet's mean" in ex.preprocessing.note
    assert ex.preprocessing.mean == IMAGENET["mean"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = vit_demo.explore(torch.randn(1, 3, 32, 32), module)
        assert given.preprocessing.note == GIVEN
        assert vit_demo.explore(read_image("docs/images/seven.png"), "digits-small").preprocessing.note == ""
        vit_demo.explore(PICTURES[0], small_timm())


def test_a_config_that_cannot_be_used_is_said():
    known = preprocessing_of(small_timm(crop_pct=7.0))
    assert not known.is_known and "crop_pct in its config.json must be a number from 0.25 to 1" in known.note


def test_one_picture_may_have_a_batch_of_its_own():
    module, pixels = own(), torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))
    np.testing.assert_array_equal(
        vit_demo.explore(pixels[None], module).logits, vit_demo.explore(pixels, module).logits
    )
    batched = vit_demo.explore(PICTURES[0], module, transform=lambda picture: pixels[None])
    np.testing.assert_array_equal(batched.logits, vit_demo.explore(pixels, module).logits)
    with pytest.raises(vit_demo.InputError, match="one picture"):
        vit_demo.explore(torch.randn(2, 3, 32, 32), module)


def test_presets_keep_theirs():
    for preset in vit_demo.presets().values():
        if preset.takes_words:
            is_siglip = preset.name == "siglip-b16"
            kept = PUBLISHED["siglip" if is_siglip else "clip"]
            assert [getattr(preset, name) for name in PREPARED] == [getattr(kept, name) for name in PREPARED]
            assert preset.scores == ("sigmoid" if is_siglip else "softmax") and preset.assumed == ""
            continue
        assert preset.crop_mode == "center" and preset.scores == "softmax" and preset.assumed == ""
