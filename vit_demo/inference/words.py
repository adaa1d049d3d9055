"""Typed words as classes: networks of pictures and text in memory, and results with other words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from vit_demo.errors import InputError
from vit_demo.inference.forward import RunOnModel, run_in_memory
from vit_demo.inference.result import Result
from vit_demo.trace import TracedViT
from vit_demo.words.classifier import Tokenize, WordClassifier, with_words
from vit_demo.words.texts import AS_TYPED, check_template, check_words

if TYPE_CHECKING:
    from vit_demo.weights import Preset

R = TypeVar("R", bound=Result)

NEEDED = (
    "A network of pictures and text needs labels=, a list of words, and transform=, its processor with a tokenizer."
)


def has_two_towers(module: nn.Module) -> bool:
    """Whether a network is one of pictures and text, as transformers builds them."""
    return all(hasattr(module, name) for name in ("get_text_features", "vision_model", "logit_scale"))


def classifier_of(model: nn.Module, labels: Any, transform: Any, template: str) -> WordClassifier:
    """A network for which ``has_two_towers`` is true as a classifier of words, ``labels``.

    ``transform`` is its processor, with a ``tokenizer``. ``InputError`` if words or tokenizer are missing,
    ``LabelError`` if the words or the template cannot be used.
    """
    tokenizer = getattr(transform, "tokenizer", None)
    words = list(labels.values()) if isinstance(labels, Mapping) else labels
    if tokenizer is None or isinstance(words, str) or not isinstance(words, Sequence):
        raise InputError(NEEDED)
    config: Any = model.config
    length = min(tokenizer.model_max_length, config.text_config.max_position_embeddings)
    options: dict[str, Any] = {"padding": "max_length", "max_length": length, "truncation": True}
    tokenize: Tokenize = partial(tokenizer, return_tensors="pt", **options)
    is_softmax = getattr(model, "logit_bias", None) is None
    checked = check_words(words, is_softmax=is_softmax)
    return WordClassifier(model, tokenize, checked, check_template(template))


def with_labels(ex: R, labels: Sequence[str], template: str = AS_TYPED) -> R:
    """The result with other words, for a network of pictures and text; no other pass if it saw this picture lately.

    Args:
        ex: The result.
        labels: The words.
        template: The text of a word, with ``{}`` in its place, as in "a photo of a {}".

    Raises:
        LabelError: If the network is another, or the words cannot be used; see ``explore``.
    """
    preset = ex.preset.with_words(labels, template)
    if preset == ex.preset:
        return ex
    run: Any = ex.run_on_model
    if preset.is_in_memory:
        run = partial(run_in_memory, ex.run(_with_words, preset.labels, template))
    else:
        run = replace(run, preset=preset)
    return other_words(ex, preset, run)


def other_words(ex: R, preset: Preset, run: RunOnModel) -> R:
    """The result with the words of a preset, whose network ``run`` runs."""
    new = replace(ex, preset=preset, run_on_model=run)
    return replace(new, logits=new.run(_logits).numpy())


def _with_words(model: TracedViT, pixels: Tensor, words: tuple[str, ...], template: str, **_: Any) -> TracedViT:
    return with_words(model, words, template)


@torch.no_grad()
def _logits(model: TracedViT, pixels: Tensor, *, patch_size: int, kept_patches: Tensor | None = None) -> Tensor:
    """The logits ``[K]`` of a picture: from its vector, if that is known."""
    module = model.module
    assert isinstance(module, WordClassifier), "other presets stay as they are"
    vector = module.vector_of(pixels) if kept_patches is None and not model.intervention else None
    logits = model(pixels, kept_patches=kept_patches) if vector is None else module.compare(vector)
    return logits[0].float()
