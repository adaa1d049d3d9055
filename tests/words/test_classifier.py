"""Typed words as classes of CLIP and SigLIP, against the networks' own similarities and explicit matrices."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import vit_demo
from benchmarks.explicit import Explicit
from vit_demo.errors import InputError, LabelError

WORDS = ["a lion", "a cat", "a rock"]
VOCABULARY = {"<pad>": 0, "<eos>": 1, "<unk>": 2, "a": 3, "lion": 4, "cat": 5, "rock": 6}
PHOTO = Image.fromarray(np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8))


def make(name: str) -> tuple[torch.nn.Module, SimpleNamespace]:
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
    text = shape | {
        "vocab_size": 8,
        "max_position_embeddings": 6,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }
    vision = shape | {"image_size": 32, "patch_size": 8}
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(text_config=text, vision_config=vision)
    model = getattr(transformers, f"{name}Model")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    core = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", model_max_length=6
    )
    images = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)
    return model, SimpleNamespace(
        tokenizer=tokenizer, image_processor=images(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    )


@pytest.fixture(scope="module", params=["CLIP", "Siglip"])
def clip(request):
    return (*make(request.param), request.param)


def own(model, processor, words):
    pixels = processor.image_processor(PHOTO, return_tensors="pt")["pixel_values"]
    tokens = processor.tokenizer(words, padding="max_length", return_tensors="pt")
    return model(pixel_values=pixels, **tokens).logits_per_image[0]


def test_probabilities_are_those_of_the_networks_similarities(clip):
    model, processor, name = clip
    ex = vit_demo.explore(PHOTO, model, labels=WORDS, transform=processor)
    with torch.no_grad():
        logits = own(model, processor, WORDS)
    assert logits.max() - logits.min() > 0.1
    np.testing.assert_allclose(ex.logits, logits, atol=1e-4)
    expected = logits.softmax(0) if name == "CLIP" else logits.sigmoid()
    np.testing.assert_allclose(ex.probabilities, expected, atol=1e-5)
    assert ex.labels == tuple(WORDS) and ex.top(1)[0][0] == WORDS[int(logits.argmax())]
    assert not model.training and not hasattr(model, "text")


def test_maps_are_those_of_explicit_matrices(clip):
    model, processor, _ = clip
    ex = vit_demo.explore(PHOTO, model, labels=WORDS, transform=processor)
    pixels = processor.image_processor(PHOTO, return_tensors="pt")["pixel_values"].requires_grad_()
    with Explicit() as explicit:
        pooled = model.get_image_features(pixel_values=pixels)
        pooled = pooled if isinstance(pooled, torch.Tensor) else pooled.pooler_output
    with torch.no_grad():
        tokens = processor.tokenizer(WORDS, padding="max_length", return_tensors="pt")
        text = model.get_text_features(**tokens)
        text = text if isinstance(text, torch.Tensor) else text.pooler_output
    similarity = torch.cosine_similarity(pooled, text) * model.logit_scale.exp()
    matrices = [matrix for matrix in explicit.matrices if matrix.shape[2] == matrix.shape[3]]
    for block, matrix in enumerate(matrices):
        np.testing.assert_allclose(ex.trace.attention(block), matrix.detach(), atol=1e-5)
    for index, word in enumerate(WORDS):
        np.testing.assert_allclose(
            ex.logits[index] - ex.logits[0], (similarity[index] - similarity[0]).item(), atol=1e-4
        )
        gradients = torch.autograd.grad(similarity[index], matrices, retain_graph=True)
        if ex.preset.config.pool == "cls":
            row = start = torch.eye(17)[:1]
            for matrix, gradient in zip(reversed(matrices), reversed(gradients), strict=True):
                row = row + row @ (matrix * gradient).relu().mean(1)[0]
            expected = (row - start)[0, 1:].unflatten(0, (4, 4)).detach()
            np.testing.assert_allclose(ex.relevance(word), expected, atol=1e-6, rtol=1e-3)


def test_a_word_is_compared_and_tested_like_any_class(clip):
    model, processor, _ = clip
    explainer = vit_demo.Explainer(model, labels=dict(enumerate(WORDS)), transform=processor)
    ex = explainer(PHOTO)
    rather = ex.heatmap("libra_fullgrad", "a lion", against="a cat")
    assert rather.shape == (4, 4) and not np.allclose(rather, ex.heatmap("libra_fullgrad", "a cat", against="a lion"))
    assert ex.faithfulness("relevance", label="a rock", steps=4, seeds=2).deletion.shape == (5,)
    with pytest.raises(LabelError, match="did you mean 'a lion'"):
        ex.relevance("a lionn")


@pytest.mark.parametrize(
    ("labels", "with_tokenizer", "error"),
    [
        (None, True, InputError), (WORDS, False, InputError), ("a lion", True, InputError), ([], True, LabelError),
        (["a lion", ""], True, LabelError), (["a lion", 3], True, LabelError), (["a lion", "a lion"], True, LabelError),
        (["x" * 10_000, "y"], True, LabelError), ([str(i) for i in range(1001)], True, LabelError),
    ],
)  # fmt: skip
def test_words_are_bounded(clip, labels, with_tokenizer, error):
    model, processor, _ = clip
    transform = processor if with_tokenizer else processor.image_processor
    with pytest.raises(error) as raised:
        vit_demo.explore(PHOTO, model, labels=labels, transform=transform)
    assert len(str(raised.value)) < 200


def test_any_text_is_a_word(clip):
    model, processor, name = clip
    words = ["🦁", "שלום", "a  cat ", "<pad>", "a " * 100]
    ex = vit_demo.explore(PHOTO, model, labels=words, transform=processor)
    assert np.isfinite(ex.logits).all() and ex.labels == tuple(words)
    alone = vit_demo.explore if name == "Siglip" else None
    if alone:
        assert len(alone(PHOTO, model, labels=["a cat"], transform=processor).logits) == 1


def test_other_words_need_no_other_image_pass(clip):
    model, processor, _ = clip
    passes = []
    handle = model.vision_model.register_forward_hook(lambda *_: passes.append(1))
    ex = vit_demo.explore(PHOTO, model, labels=WORDS, transform=processor)
    passes.clear()
    other = ex.with_labels(["a rock", "a lion"])
    assert passes == []
    handle.remove()
    expected = vit_demo.explore(PHOTO, model, labels=["a rock", "a lion"], transform=processor)
    assert other.labels == ("a rock", "a lion") and ex.labels == tuple(WORDS)
    np.testing.assert_allclose(other.logits, expected.logits, atol=1e-5)
    np.testing.assert_allclose(other.relevance("a lion"), expected.relevance("a lion"), atol=1e-6)
    np.testing.assert_allclose(ex.relevance("a lion"), expected.relevance("a lion"), atol=1e-6)
    ex.faithfulness("relevance", steps=3, seeds=1)  # other pictures were seen since
    np.testing.assert_allclose(ex.with_labels(["a cat", "a lion"]).logits, ex.logits[[1, 0]], atol=1e-5)
    with pytest.raises(LabelError):
        ex.with_labels(["a cat", "a cat"])


def test_only_networks_of_pictures_and_text_take_other_words():
    with pytest.raises(LabelError, match="photos-tiny knows 50 classes"):
        vit_demo.explore(PHOTO, "photos-tiny").with_labels(["a cat", "a dog"])


def test_weights_that_were_changed_since_are_not_forgotten(clip):
    model, processor, name = clip
    model, processor = make(name)  # not that of the other tests
    ex = vit_demo.explore(PHOTO, model, labels=WORDS, transform=processor)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.05)
    changed = ex.with_labels(["a rock", "a cat"])
    expected = vit_demo.explore(PHOTO, model, labels=["a rock", "a cat"], transform=processor)
    if name == "CLIP":  # whose scale is that of the beginning: angles alone are compared
        ratio = changed.logits / expected.logits
        np.testing.assert_allclose(ratio[1], ratio[0], rtol=1e-3)
    assert not np.allclose(changed.logits, ex.logits[[2, 1]], atol=1e-3)


def test_a_tokenizer_without_a_length_pads_to_that_of_the_text_tower(clip) -> None:
    model, processor, _ = clip
    tokenizer = copy.deepcopy(processor.tokenizer)
    tokenizer.model_max_length = int(1e30)  # what transformers takes where the files name none
    endless = SimpleNamespace(tokenizer=tokenizer, image_processor=processor.image_processor)
    length = model.config.text_config.max_position_embeddings
    ex = vit_demo.explore(PHOTO, model, labels=WORDS, transform=endless)
    with torch.no_grad():
        tokens = tokenizer(WORDS, padding="max_length", max_length=length, return_tensors="pt")
        pixels = processor.image_processor(PHOTO, return_tensors="pt")["pixel_values"]
        expected = model(pixel_values=pixels, **tokens).logits_per_image[0]
    np.testing.assert_allclose(ex.logits, expected, atol=1e-3, rtol=1e-4)
