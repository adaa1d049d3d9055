"""Invalid values in ``config.json`` and ``preprocessor_config.json``: one clear sentence, never a traceback."""

import pytest

from vit_demo.weights import limits

from .model_folder import INFINITY, NAN, assert_refused, set_field

NOT_WHOLE = [0, -2, "2", None, True, 2.5, 10**30, [3], {}, NAN]
NOT_NUMBERS = ["x", True, NAN, INFINITY, -1, 1e9, [], {}]
NOT_CHANNELS = [[0.5, 0.5], [0.5] * 4, ["a", "b", "c"], [NAN] * 3, [INFINITY] * 3, 0.5, "x", {}, [None] * 3, [[]] * 3]


REFUSED = {
    ("transformers_folder", "config.json"): {
        ("layer_norm_eps",): [*NOT_NUMBERS, None],
        ("model_type",): [None, 3, [], {}, True, "swin", "x" * 10_000, "\u202eevil\n"],
        ("hidden_act",): [None, 3, [], {}],
        ("architectures",): ["x", {}, [1], 3],
        ("id2label",): [[], "x", {"a": "x"}, {"0": 3}, {"0": None}, {"1": "x"}, {"00": "x"}, {"0": ["x"]}, 3],
        ("image_size",): [[32], [32, 32, 32], [32, "32"], [0, 0], [32, 64]],
        ("qkv_bias",): [1, "yes", None, []],
    },
    ("transformers_folder", "preprocessor_config.json"): {
        ("image_mean",): NOT_CHANNELS,
        ("image_std",): [*NOT_CHANNELS, [0, 0, 0], [-1, 1, 1], [1e-30] * 3],
        ("resample",): [99, -1, "2", True, 2.0, [], {}],
        ("rescale_factor",): NOT_NUMBERS,
        ("do_rescale",): [1, "true", []],
        ("do_normalize",): [0, "false", {}],
        ("do_center_crop",): [1, "x"],
        ("crop_size",): [0, "x", True, [28, 28], {"height": 0}, {"height": "28"}, {"width": 28}, {"height": 1}],
        ("size",): [0, -3, "x", True, {"shortest_edge": 0}, {"height": []}, {"longest": 3}],
    },
    ("timm_folder", "config.json"): {
        ("architecture",): [3, [], {}, True, "resnet50", "x" * 100_000, "vit_\u202e\n"],
        ("num_classes",): [-1, "3", 2.0, True, [], 10**9],
        ("label_names",): ["abc", {"0": "a"}, [1, 2, 3], [None] * 3, [["a"]] * 3, 3],
        ("global_pool",): ["map", "x" * 1000, 3, []],
        ("model_args",): [[], "x", 3],
        ("model_args", "act_layer\n\u202e" + "x" * 1000): [1],
        ("pretrained_cfg",): [[], "x", 3],
        ("pretrained_cfg", "mean"): NOT_CHANNELS,
        ("pretrained_cfg", "std"): [*NOT_CHANNELS, [0, 0, 0], [1, 1, -1]],
        ("pretrained_cfg", "crop_pct"): ["x", 0, NAN, True, -1, 1e-9, 2, []],
        ("pretrained_cfg", "interpolation"): ["evil", 3, [], True, "BICUBIC\n"],
        ("pretrained_cfg", "crop_mode"): ["floor", "corner", 3, []],
    },
}
"""Values of each field that are refused, by the kind of model and the file; a field is the keys that lead to it."""


def assert_each_refused(folder, file, keys, values, message=None):
    original = (folder / file).read_bytes()
    for value in values:
        (folder / file).write_bytes(original)
        set_field(folder / file, *keys, value=value)
        assert len(assert_refused(folder, message)) < 300


@pytest.mark.parametrize(
    ("folder", "keys", "values"),
    [
        ("transformers_folder", ("num_attention_heads",), NOT_WHOLE),
        ("transformers_folder", ("image_size",), NOT_WHOLE),
        ("timm_folder", ("model_args", "num_heads"), NOT_WHOLE),
        ("timm_folder", ("model_args", "img_size"), [0, "2"]),
    ],
)
def test_numbers_that_are_not_whole(request, folder, keys, values):
    message = f"the {keys[-1]} in its config.json must be"
    assert_each_refused(request.getfixturevalue(folder), "config.json", keys, values, message)


@pytest.mark.parametrize(
    ("folder", "file", "keys", "values"),
    [(*where, keys, values) for where, fields in REFUSED.items() for keys, values in fields.items()],
)
def test_values_that_make_no_sense(request, folder, file, keys, values):
    assert_each_refused(request.getfixturevalue(folder), file, keys, values)


@pytest.mark.parametrize(
    "value", [[3, 224], [3, 64, 64, 64], [3, 0, 0], ["3", "64", "64"], [3, 64, 32], 64.0, "64", {}]
)
def test_timm_input_size(timm_folder, value):
    set_field(timm_folder / "config.json", "model_args", value={"depth": 1})
    set_field(timm_folder / "config.json", "pretrained_cfg", "input_size", value=value)
    assert_refused(timm_folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "does not hold a JSON object"),
        (b"[" * 10_000 + b"]" * 10_000, "not JSON"),
        (b'{"architecture": ' + b'{"a": ' * 10_000 + b"1" + b"}" * 10_001, "not JSON"),
        ('{"model_type": "vit"}'.encode("utf-16"), "not JSON in UTF-8"),
        (b"\xff\xfe\x00", "not JSON in UTF-8"),
        (b'{"num_classes": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"", "not JSON"),
        (b'"vit"', "does not hold a JSON object"),
        (b'{"a": "' + b"x" * limits.MAX_JSON_BYTES + b'"}', "has more than 1.0 MB"),
    ],
    ids=["list", "nested", "nested-objects", "utf-16", "no-text", "digits", "empty", "text", "large"],
)
@pytest.mark.parametrize("file", ["config.json", "preprocessor_config.json"])
def test_files_that_are_no_json_object(transformers_folder, file, content, message):
    (transformers_folder / file).write_bytes(content)
    assert_refused(transformers_folder, message)


def test_foreign_text_is_quoted_short_and_clean(timm_folder):
    set_field(timm_folder / "config.json", "architecture", value="\u202e\n\x1b[31m" + "vit" * 1000)
    assert len(assert_refused(timm_folder)) < 250
