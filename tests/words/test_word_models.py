"""CLIP and SigLIP of the Hub: their words against transformers' own similarities, and hostile tokenizers."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo.errors import LabelError
from vit_demo.weights import PRESETS, find_preset
from vit_demo.weights.limits import MAX_TOKENIZER_BYTES

from ..weights.model_folder import assert_refused, edit_weights, set_field, write_files
from .word_models import clip_vocabulary, text_tokens, word_files, word_model

PHOTO = Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32, 3), dtype=np.uint8))
WORDS = ["a lion", "a cat", "lion cat"]


@pytest.fixture(params=["clip", "siglip"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    return write_files(tmp_path, word_files(kind))


def own_logits(kind: str, ex: vit_demo.Exploration, words: list[str]) -> torch.Tensor:
    model = word_model(kind)
    with torch.no_grad():
        return model(pixel_values=ex.pixels, input_ids=text_tokens(kind, words)).logits_per_image[0]


def test_words_are_classes_of_a_repository(kind, hub):
    hub.repositories["someone/words"] = word_files(kind)
    ex = vit_demo.explore(PHOTO, "someone/words", labels=WORDS)
    logits = own_logits(kind, ex, WORDS)
    assert logits.max() - logits.min() > 0.1 and ex.labels == tuple(WORDS) and ex.grid == (4, 4)
    np.testing.assert_allclose(ex.logits, logits, atol=1e-4)
    expected = logits.softmax(0) if kind == "clip" else logits.sigmoid()
    np.testing.assert_allclose(ex.probabilities, expected, atol=1e-5)
    assert ex.preset.takes_words and ex.preset.scores == ("softmax" if kind == "clip" else "sigmoid")
    assert hub.gets("tokenizer.json") == 1
    first = vit_demo.explore(PHOTO, "someone/words")
    assert first.labels == ("a lion", "a cat", "a rock") and hub.gets("model.safetensors") == 1


def test_other_words_need_no_image_pass_and_no_text_is_encoded_twice(kind, folder, monkeypatch):
    from vit_demo.words.classifier import TextTower

    encoded = []
    own = TextTower._encode
    monkeypatch.setattr(TextTower, "_encode", lambda self, texts: encoded.extend(texts) or own(self, texts))
    ex = vit_demo.explore(PHOTO, str(folder), labels=["a lion", "a cat"])
    encoded.clear()
    passes = []
    ex.run(lambda model, *_, **__: model.module.vision_model.register_forward_hook(lambda *_: passes.append(1)))
    other = ex.with_labels(["a cat", "lion"])
    assert encoded == ["lion"] and passes == [] and other.labels == ("a cat", "lion")
    np.testing.assert_allclose(other.logits, own_logits(kind, ex, ["a cat", "lion"]), atol=1e-4)
    expected = vit_demo.explore(PHOTO, str(folder), labels=["a cat", "lion"])
    np.testing.assert_allclose(other.relevance("lion"), expected.relevance("lion"), atol=1e-6)
    assert ex.labels == ("a lion", "a cat"), "the first result keeps its words"
    np.testing.assert_allclose(ex.heatmap("legrad", "a cat"), other.heatmap("legrad", "a cat"), atol=1e-6)


def test_a_picture_without_some_patches_is_not_taken_for_the_whole(kind, folder):
    ex = vit_demo.explore(PHOTO, str(folder), labels=["a lion", "a cat"])
    for patch in range(12):  # more than are kept
        ex.drop_patches([divmod(patch, 4), (3, 3)])
        ex.heatmap("naclip", "a cat")
    other = ex.with_labels(["a cat", "lion"])
    np.testing.assert_allclose(other.logits, own_logits(kind, ex, ["a cat", "lion"]), atol=1e-4)
    part = ex.drop_patches([(0, 0), (1, 1)])
    expected = vit_demo.explore(PHOTO, str(folder), labels=["a cat", "lion"]).drop_patches([(0, 0), (1, 1)])
    np.testing.assert_allclose(part.with_labels(["a cat", "lion"]).logits, expected.logits, atol=1e-4)
    assert not np.allclose(expected.logits, other.logits, atol=1e-3)


def test_a_saved_result_keeps_its_words(kind, hub, tmp_path):
    hub.repositories["someone/words"] = word_files(kind)
    for labels in (["a lion", "cat"], ["lion"]):
        ex = vit_demo.explore(PHOTO, "someone/words", labels=labels, template="a {}")
        ex.save(tmp_path / "saved.safetensors")
        again = vit_demo.load_result(tmp_path / "saved.safetensors")
        assert again.labels == ex.labels and again.top() == ex.top()
        np.testing.assert_allclose(again.relevance(labels[-1]), ex.relevance(labels[-1]), atol=1e-6)


def test_a_template_is_the_text_of_each_word(kind, folder):
    ex = vit_demo.explore(PHOTO, str(folder), labels=["lion", "cat"], template="a {}")
    np.testing.assert_allclose(ex.logits, own_logits(kind, ex, ["a lion", "a cat"]), atol=1e-4)
    assert ex.labels == ("lion", "cat")
    for template in ("a photo", "{} {}", "{}" + "x" * 300, 3):
        with pytest.raises(LabelError, match="a photo of"):
            vit_demo.explore(PHOTO, str(folder), labels=["lion", "cat"], template=template)


def test_one_word_of_a_softmax_is_compared_with_an_empty_text(kind, folder):
    ex = vit_demo.explore(PHOTO, str(folder), labels=["a lion"], template="{} cat")
    if kind == "siglip":
        assert ex.labels == ("a lion",)
        return
    assert ex.labels == ("a lion", "(no words)")
    np.testing.assert_allclose(ex.logits, own_logits(kind, ex, ["a lion cat", ""]), atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 50, 1000])
def test_any_number_of_any_words(kind, folder, count):
    words = ["🦁", "שלום\u200f", "👨\u200d👩\u200d👧", "a  cat ", "<|endoftext|>", "</s>", "a " * 140, "中文"]
    words = [*words, *(f"lion {number}" for number in range(count))][:count]
    ex = vit_demo.explore(PHOTO, str(folder), labels=words)
    assert np.isfinite(ex.logits).all() and ex.labels[: len(words)] == tuple(words)
    assert ex.relevance(words[-1]).shape == (4, 4)


def test_without_a_tokenizer_the_picture_tower_has_no_classes(kind, folder):
    (folder / "tokenizer.json").unlink()
    assert find_preset(str(folder)).labels == ()
    with pytest.raises(LabelError, match="has no classes: for words of your own choose tinyclip-8m"):
        vit_demo.explore(PHOTO, str(folder), labels=WORDS)


@pytest.mark.parametrize(
    "tokenizer",
    [
        {}, {"model": 3}, {"model": {}}, {"model": {"vocab": {}, "merges": []}}, {"model": {"vocab": [], "unk_id": 0}},
        {"model": {"vocab": {"<|startoftext|>": 0, "<|endoftext|>": 10**9}, "merges": []}},
        {"model": {"vocab": {"<|startoftext|>": 0, "<|endoftext|>": -1}, "merges": []}},
        {"model": {"vocab": {"<|startoftext|>": 0, "<|endoftext|>": True}, "merges": []}},
        {"model": {"vocab": clip_vocabulary(), "merges": [["x", "not there"]]}},
        {"model": {"vocab": clip_vocabulary(), "merges": [3]}},
        {"model": {"vocab": clip_vocabulary() | {"x" * 10_000: 3}, "merges": []}},
        {"model": {"vocab": [["</s>", "x"]], "unk_id": 0}}, {"model": {"vocab": [["</s>", -1.0]], "unk_id": 7}},
        {"model": {"vocab": [["a", float("nan")]], "unk_id": 0}},
        {"model": {"vocab": [["</s>", -1.0], ["<unk>", -2.0]] + [["x", -3.0]] * 500, "unk_id": 1}},
    ],
)  # fmt: skip
def test_a_tokenizer_that_cannot_be_used_is_refused(folder, tokenizer):
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert_refused(folder, r"its tokenizer\.json holds no vocabulary of (CLIP|SigLIP)")


def test_a_tokenizer_is_bounded_in_size_before_it_is_parsed(folder):
    (folder / "tokenizer.json").write_bytes(b" " * (MAX_TOKENIZER_BYTES + 1))
    assert_refused(folder, "has more than 4.2 MB")
    (folder / "tokenizer.json").write_bytes(b"[" * 1_000_000)
    assert_refused(folder, "is not JSON")


def test_no_pattern_of_a_tokenizer_runs(folder):
    file = json.loads((folder / "tokenizer.json").read_text())
    slow = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}
    (folder / "tokenizer.json").write_text(json.dumps({**file, "normalizer": slow, "pre_tokenizer": slow}))
    # Such a pattern would take longer than the universe has existed.
    vit_demo.explore(PHOTO, str(folder), labels=["a" * 200 + "!", "a cat"])


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("text_config", "vocab_size"), 10**9), (("text_config", "max_position_embeddings"), 10**6),
        (("text_config", "hidden_size"), 10**6), (("text_config", "num_hidden_layers"), 10**4),
        (("text_config", "hidden_act"), "exec"), (("text_config", "vocab_size"), "3"),
    ],
)  # fmt: skip
def test_a_text_tower_is_bounded(folder, keys, value):
    set_field(folder / "config.json", *keys, value=value)
    assert_refused(folder)


def test_a_scale_that_is_not_finite_is_refused(folder):
    edit_weights(folder, lambda tensors: tensors["logit_scale"].fill_(1e5))
    with pytest.raises(vit_demo.errors.CheckpointError, match="makes of words is not a number"):
        vit_demo.explore(PHOTO, str(folder))


def test_labels_that_are_no_list_get_a_sentence(folder):
    for model in (str(folder), "photos-tiny"):
        for labels in (3, "a lion", {3}):
            with pytest.raises(LabelError):
                vit_demo.explore(PHOTO, model, labels=labels)


def test_the_presets_that_take_words():
    found = {name: preset for name, preset in PRESETS.items() if preset.takes_words}
    assert list(found) == ["tinyclip-8m", "tinyclip-39m", "clip-b16", "siglip-b16"]
    assert {preset.scores for name, preset in found.items() if name != "siglip-b16"} == {"softmax"}
    for preset in found.values():
        assert preset.labels == ("a lion", "a cat", "a rock") and preset.config.num_classes == 3


def test_a_model_of_fixed_classes_says_what_it_knows():
    ex = vit_demo.explore(PHOTO, "photos-tiny", labels=["lion", "pizza"])
    assert len(ex.labels) == 50, "words among its labels are classes that it has"
    with pytest.raises(LabelError, match=r"photos-tiny knows 50 classes \(tabby cat, .*\): for words of your own"):
        vit_demo.explore(PHOTO, "photos-tiny", labels=["a dragon"])


def test_inference_mode_changes_nothing(kind, folder):
    expected = vit_demo.explore(PHOTO, folder, labels=WORDS)
    with torch.inference_mode():
        found = vit_demo.explore(PHOTO, folder, labels=WORDS)
        other = found.with_labels(WORDS[:2])
        maps = [found.relevance(), other.relevance(WORDS[1])]
    np.testing.assert_allclose(maps[0], expected.relevance(), atol=1e-6)
    np.testing.assert_allclose(maps[1], expected.with_labels(WORDS[:2]).relevance(WORDS[1]), atol=1e-6)
    np.testing.assert_allclose(other.relevance(WORDS[1]), maps[1], atol=1e-6)
