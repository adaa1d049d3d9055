"""What files say of preprocessing, against the processor or transform that the library itself makes of them.

Whatever a file says, the photo is prepared as the library does, or the model is refused: never another way.
"""

import json
import re

import numpy as np
import pytest
import timm
import torch
import transformers
from PIL import Image
from timm.models._hub import load_model_config_from_path

import vit_demo
from vit_demo.errors import PresetError
from vit_demo.images import preprocess
from vit_demo.weights import find_preset
from vit_demo.weights.hub.preprocessing import PREPARED, Preprocessing, parse_preprocessing, preprocessing_of

from .model_folder import WEIGHTS_FILE, timm_files, write_files
from .test_preprocessing import small_timm

SIZES = ((300, 451), (301, 222), (64, 64), (133, 100))
PICTURES = [
    Image.fromarray(np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8))
    for width, height in SIZES
]


def furthest(known: Preprocessing, theirs) -> float:
    """The largest difference from what a library prepares, in levels of 255."""
    options, off = {name: getattr(known, name) for name in PREPARED}, [0.0]
    for picture in PICTURES:
        found = preprocess(picture, image_size=known.image_size, patch_size=1, **options)[0][0]
        expected = theirs(picture)
        assert found.shape == expected.shape
        off.append(float((255 * (found - expected).abs() * torch.tensor(known.std)[:, None, None]).max()))
    return max(off)


KINDS = ("vit", "deit", "beit", "clip_vision_model", "dinov2", "siglip_vision_model", "dinov3_vit")
EDGE, SQUARE, HALVES = {"shortest_edge": 160}, {"height": 160, "width": 160}, [127.5] * 3
PROCESSORS = {
    **{f"{kind}, all by default": (kind, {}) for kind in KINDS},
    **{f"{kind}, bilinear": (kind, {"resample": 2}) for kind in KINDS},
    **{f"{kind}, as it is": (kind, {"do_rescale": False, "do_normalize": False}) for kind in KINDS},
    **{f"{kind}, null": (kind, {"do_center_crop": None, "image_mean": None}) for kind in KINDS},
    **{f"{kind}, not cropped": (kind, {"do_center_crop": None, "crop_size": None, "resample": None}) for kind in KINDS},
    "a feature extractor": ("vit", {"feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 3}),
    "a fast processor": ("vit", {"image_processor_type": "CLIPImageProcessorFast"}),
    "lanczos": ("vit", {"resample": 1}),
    "not scaled, in levels": ("vit", {"do_rescale": False, "image_mean": HALVES, "image_std": HALVES}),
    "another scale": ("vit", {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}),
    "not normalised": ("clip_vision_model", {"do_normalize": False}),
    "an edge and a crop": ("vit", {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224}),
    "an odd crop": ("vit", {"size": {"shortest_edge": 241}, "do_center_crop": True, "crop_size": 224}),
    "the least crop": ("vit", {"size": 896, "do_center_crop": True, "crop_size": 224}),
    "no crop": ("deit", {"do_center_crop": False, "resample": 2}),
    "a crop above the size": ("vit", {"size": SQUARE, "do_center_crop": True, "crop_size": 224}),
    "an odd crop above the size": ("deit", {"size": 101, "crop_size": {"height": 224, "width": 224}}),
    "a crop above the edge": ("dinov2", {"size": EDGE, "crop_size": {"height": 224, "width": 224}}),
    "a number for the edge": ("clip_vision_model", {"size": 256}),
    "a number for the square": ("clip_vision_model", {"size": 224, "default_to_square": True}),
    "a field that its class does not know": ("vit", {"do_flip_channel_order": True, "crop_pct": 0.5, "foo": [{}]}),
    "labels": ("beit", {"do_reduce_labels": True, "reduce_labels": True}),
    "ConvNeXt's crop": ("vit", {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}}),
    "ConvNeXt's share": ("vit", {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 224, "crop_pct": 0.9}),
    "BLIP's": ("vit", {"image_processor_type": "BlipImageProcessor", "size": {"height": 224, "width": 224}}),
}  # fmt: skip
REFUSED = {
    "blue, green, red": ("vit", {"image_processor_type": "MobileViTImageProcessor", "size": 256, "crop_size": 224}),
    "'EvilImageProcessor' prepares": ("vit", {"image_processor_type": "EvilImageProcessor"}),
    "'os.system' prepares": ("vit", {"image_processor_type": "os.system"}),
    "do_pad in its preprocessor_config.json must be false": ("vit", {"do_pad": True, "pad_size": 256}),
    "298 x 224, not a square": ("vit", {"size": {"shortest_edge": 224}}),
    "224 x 168, not a square": ("vit", {"size": {"max_height": 224, "max_width": 224}}),
    "256 x 224, not a square": ("vit", {"size": {"height": 256, "width": 224}}),
    "a way of its own": ("vit", {"size": {"height": 256, "width": 240}, "do_center_crop": True, "crop_size": 224}),
    "levels from ours": ("dinov3_vit", {"resample": 3}),  # of numbers that are not rounded
    "not resized": ("vit", {"do_resize": False}),
    "must be one of 0, 1, 2, 3": ("vit", {"resample": 4}),
    "size in its preprocessor_config.json must be a whole number from 1 to 2,072": ("vit", {"size": 10**9}),
    "not an object": ("vit", {"crop_size": {"height": 10**9, "width": 1}}),
    "not 4096": ("vit", {"size": 4096}),
    "crop keeps 100 of": ("vit", {"size": 500, "do_center_crop": True, "crop_size": 100}),
    "cannot be used": ("vit", {"size": {"width": 3}}),
    "image_mean .* must be a list of 3": ("vit", {"image_mean": [[[[]]]]}),
}  # fmt: skip


def config_of(kind: str) -> dict:
    return {"model_type": kind, "image_size": 224, "patch_size": 16}


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_is_transformers_own(name, tmp_path):
    kind, fields = PROCESSORS[name]
    write_files(tmp_path, {"config.json": json.dumps(config_of(kind.removesuffix("_vision_model"))).encode()})
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fields))
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    try:
        processor(PICTURES[0])
    except ValueError:  # a null that is needed
        with pytest.raises(PresetError, match="cannot be used"):
            parse_preprocessing(config_of(kind), fields)
        return
    known = parse_preprocessing(config_of(kind), fields)
    if known.image_size != 224 or known.note:  # what transformers would refuse to run
        assert "the same part of the photo" in known.note
        return
    assert furthest(known, lambda picture: processor(picture, return_tensors="pt")["pixel_values"][0]) < 2.02


@pytest.mark.parametrize("message", REFUSED)
def test_a_processor_that_cannot_be_followed_is_refused(message):
    kind, fields = REFUSED[message]
    with pytest.raises(PresetError, match=message) as refused:
        parse_preprocessing(config_of(kind), fields)
    assert len(str(refused.value)) < 250 and str(refused.value).endswith(".")


def test_nearest_is_said():
    known = parse_preprocessing(config_of("vit"), {"resample": 0})
    assert known.interpolation == "nearest" and "above 2,048 pixels" in known.note
    module = small_timm(interpolation="nearest")
    assert "above 2,048 pixels" in vit_demo.explore(PICTURES[0], module).preprocessing.note


def test_a_nested_processor_counts_before_a_flat_one(tmp_path, transformers_files):
    """As transformers 5 saves CLIP's."""
    fields = {"image_processor_type": "CLIPImageProcessor", "size": 40, "crop_size": 32}
    nested = {"image_processor": fields, "processor_class": "CLIPProcessor"}
    write_files(tmp_path, transformers_files | {"processor_config.json": json.dumps(nested).encode()})
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path)
    preset = find_preset(str(tmp_path))
    ex = vit_demo.explore(PICTURES[0], str(tmp_path))
    expected = processor(PICTURES[0], return_tensors="pt")["pixel_values"][0]
    assert preset.mean == tuple(transformers.image_utils.OPENAI_CLIP_MEAN) and preset.assumed == ""
    assert (255 * (ex.pixels[0] - expected).abs() * torch.tensor(preset.std)[:, None, None]).max() < 2.02
    (tmp_path / "processor_config.json").write_text('{"processor_class": "CLIPProcessor"}')
    assert find_preset(str(tmp_path)).mean == (0.5, 0.5, 0.5)  # the flat one's
    (tmp_path / "processor_config.json").write_text('{"image_processor": [3]}')
    with pytest.raises(PresetError, match=r"image_processor in its processor_config.json must be an object"):
        find_preset(str(tmp_path))


def test_bars_around_a_photo_are_black_and_where_the_model_saw_them(tmp_path, transformers_files):
    fields = {"size": {"shortest_edge": 20}, "do_center_crop": True, "crop_size": 32, "do_normalize": False}
    write_files(tmp_path, transformers_files | {"preprocessor_config.json": json.dumps(fields).encode()})
    white = Image.new("RGB", (90, 60), "white")
    ex = vit_demo.explore(white, str(tmp_path))
    assert ex.pixels[0, :, [0, 5, 26, 31], 4].max() == 0 and ex.pixels[0, :, 6:26, 1:31].min() == 1
    assert ex.geometry.mode == "border" and ex.geometry.box == pytest.approx((-3, -18, 93, 78))
    view = np.asarray(ex.image.resize((32, 32), Image.Resampling.BOX))
    assert np.abs(view / 255.0 - ex.pixels[0].permute(1, 2, 0).numpy()).max() < 0.05


FULL = {"input_size": [3, 64, 64], "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "crop_pct": 0.8}
TIMM = {
    **{f"without {key}": {k: v for k, v in FULL.items() if k != key} for key in ("mean", "std", "crop_pct")},
    **{f"{key} null": {**FULL, key: None} for key in ("mean", "std", "crop_pct", "interpolation", "crop_mode")},
    **{f"by {mode}": {**FULL, "crop_mode": mode} for mode in ("center", "squash", "border")},
    **{
        f"{filter}": {**FULL, "interpolation": filter}
        for filter in ("bilinear", "bicubic", "lanczos", "nearest", "box", "hamming")
    },
    "for testing": {**FULL, "test_crop_pct": 1.0, "test_input_size": [3, 96, 96]},
    "the size alone": {"input_size": [3, 64, 64]},
}


@pytest.mark.parametrize("is_flat", [False, True], ids=["nested", "flat"])
@pytest.mark.parametrize("name", TIMM)
def test_a_config_of_timm_is_read_as_timm_reads_it(name, is_flat, tmp_path):
    config = {"architecture": "vit_tiny_patch16_224", "num_classes": 3}
    config |= TIMM[name] if is_flat else {"pretrained_cfg": TIMM[name]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    theirs, _, _ = load_model_config_from_path(tmp_path)
    transform = timm.data.create_transform(**timm.data.resolve_data_config(pretrained_cfg=theirs))
    assert furthest(parse_preprocessing(config, None), transform) < 1e-3


def test_names_of_a_flat_config_of_timm(tmp_path):
    files = timm_files()
    config = json.loads(files["config.json"]) | {"labels": ["a", "b"], "mean": [0.3] * 3, "std": [0.2] * 3}
    write_files(tmp_path, files | {"config.json": json.dumps(config).encode()})
    preset = find_preset(str(tmp_path))
    assert preset.labels == ("a", "b") and preset.mean == (0.3,) * 3 and preset.assumed == ""


def test_wordnet_ids_are_named_one_by_one():
    ids = timm.data.ImageNetInfo().label_names()
    config = {"architecture": "vit_tiny_patch16_224", "label_names": ids[::-1]}
    labels = parse_preprocessing(config, None).labels
    assert (labels[0], labels[-1], labels[999 - 291]) == ("toilet tissue", "tench", "lion")


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("value", ["thing", 7])
def test_names_in_memory_may_count_from_1_or_be_numbers(first, value):
    config = transformers.CLIPVisionConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=48, image_size=32, patch_size=8
    )
    config.id2label = {i: value + i if isinstance(value, int) else f"{value} {i}" for i in range(first, first + 24)}
    known = preprocessing_of(transformers.CLIPVisionModel(config))
    assert known.labels == tuple(str(name) for name in config.id2label.values())
    config.id2label = {3: "x", 9: "y"}
    gaps = preprocessing_of(transformers.CLIPVisionModel(config))
    assert (
        gaps.labels == ()
        and "so they have numbers" in gaps.note
        and gaps.mean == known.mean == tuple(transformers.image_utils.OPENAI_CLIP_MEAN)
    )


def test_timm_within_transformers_is_prepared_by_timm():
    cfg = {**small_timm().pretrained_cfg, "mean": (0.1, 0.2, 0.3), "crop_pct": 0.7, "interpolation": "bilinear"}
    config = transformers.TimmWrapperConfig.from_dict(
        {
            "architecture": "vit_tiny_patch16_224",
            "pretrained_cfg": cfg,
            "num_classes": 3,
            "label_names": ["a", "b", "c"],
        }
    )
    config.model_args = {"img_size": 64, "depth": 1}
    module = transformers.TimmWrapperForImageClassification(config).eval()
    processor = transformers.models.timm_wrapper.TimmWrapperImageProcessor(cfg)
    known = preprocessing_of(module)
    assert known.labels == ("a", "b", "c") and known.note == ""
    assert furthest(known, lambda picture: processor(picture)["pixel_values"][0]) < 1e-3


def test_a_scale_that_is_learned_has_no_value_before_the_weights(tmp_path):
    """timm's differential attention multiplies by a number of its own; a folder is outlined without its weights."""
    torch.manual_seed(0)
    shape = {"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 2}
    module = timm.create_model("vit_dwee_patch16_reg1_gap_256", num_classes=3, **shape).eval()
    timm.models.save_for_hf(module, tmp_path, {"model_args": shape}, safe_serialization=True)
    ex = vit_demo.explore(PICTURES[2], str(tmp_path))
    with torch.no_grad():
        np.testing.assert_allclose(ex.logits, module(ex.pixels)[0], atol=1e-5)


def test_weights_of_a_compiled_network_are_read(tmp_path):
    from safetensors.torch import load, save

    files = timm_files()
    named = {f"_orig_mod.{name}": tensor for name, tensor in load(files[WEIGHTS_FILE]).items()}
    write_files(tmp_path, files)
    expected = vit_demo.explore(PICTURES[2], str(tmp_path)).logits
    write_files(tmp_path, files | {WEIGHTS_FILE: save(named)})
    np.testing.assert_array_equal(vit_demo.explore(PICTURES[2], str(tmp_path)).logits, expected)


@pytest.mark.parametrize("is_with_config", [False, True])
def test_an_adapter_alone_is_said(tmp_path, hub, is_with_config):
    files = {"adapter_config.json": b'{"peft_type": "LORA"}', "adapter_model.safetensors": b""}
    if is_with_config:
        files["config.json"] = timm_files()["config.json"]
    write_files(tmp_path, files)
    hub.repositories["tester/adapter"] = files
    for name in (str(tmp_path), "tester/adapter"):
        with pytest.raises(vit_demo.CheckpointError, match=re.escape("merge_and_unload()")) as refused:
            find_preset(name)
        assert str(refused.value).startswith(name)
