"""Classes that one types: what CLIP and SigLIP of transformers say of a picture beside words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import InputError, LabelError
from vit_demo.inference.forward import run_in_memory
from vit_demo.scores import Scores
from vit_demo.trace import TracedViT
from vit_demo.trace.running import in_eval

if TYPE_CHECKING:
    from vit_demo.inference.exploration import Exploration

MAX_WORDS = 1000
MAX_CHARACTERS = 300
"""Of one word, or one sentence."""
NEEDED = (
    "A network of pictures and text needs labels=, a list of words, and transform=, its processor with a tokenizer."
)


class WordClassifier(nn.Module):
    """The similarity of pictures to words as logits: a picture tower, and the vectors that a text tower made of words.

    With CLIP's scale a softmax compares the words (Radford et al., 2021, https://arxiv.org/abs/2103.00020); with
    SigLIP's scale and bias each has a probability of its own (Zhai et al., 2023, https://arxiv.org/abs/2303.15343).

    Args:
        model: ``CLIPModel``, ``SiglipModel`` or one like them, whose picture tower is shared, not copied.
        words: One for each class.
        tokenizer: Of the model.
    """

    text: Tensor
    bias: Tensor

    def __init__(self, model: Any, words: Sequence[str], tokenizer: Any) -> None:
        super().__init__()
        self.vision_model = model.vision_model
        self.projection = getattr(model, "visual_projection", None) or nn.Identity()
        self._seen: tuple[Tensor, Tensor] | None = None  # the last picture and its vector

        def other(words: Sequence[str]) -> WordClassifier:
            return WordClassifier(model, words, tokenizer).eval()

        self.with_words, self.is_softmax = other, getattr(model, "logit_bias", None) is None
        tokens = tokenizer(list(words), padding="max_length", truncation=True, return_tensors="pt")
        with in_eval(model), torch.inference_mode(False), torch.no_grad():
            text = model.get_text_features(**tokens.to(model.logit_scale.device))
            text = text if isinstance(text, Tensor) else text.pooler_output
            scale = model.logit_scale.exp()
            bias = torch.zeros_like(scale) if self.is_softmax else model.logit_bias.detach().clone()
        self.register_buffer("text", F.normalize(text, dim=-1) * scale)  # [K, D]
        self.register_buffer("bias", bias)

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``[B, K]`` of images ``[B, 3, height, width]``."""
        vectors = self.projection(self.vision_model(pixel_values=images).pooler_output)  # [B, D]
        if len(images) == 1:
            self._seen = images.detach(), vectors.detach()
        return self.compare(vectors)

    def compare(self, vectors: Tensor) -> Tensor:
        """Logits ``[B, K]`` of pictures by their vectors ``[B, D]``."""
        return F.normalize(vectors, dim=-1) @ self.text.mT + self.bias

    def vector_of(self, image: Tensor) -> Tensor | None:
        """The vector ``[1, D]`` of the picture ``[1, 3, height, width]`` that it saw last; None of any other."""
        seen = self._seen
        return seen[1] if seen is not None and torch.equal(seen[0], image.to(seen[0])) else None


def has_two_towers(module: nn.Module) -> bool:
    """Whether a network is one of pictures and text, as transformers builds them."""
    return all(hasattr(module, name) for name in ("get_text_features", "vision_model", "logit_scale"))


def classifier_of(model: nn.Module, labels: Any, transform: Any) -> tuple[WordClassifier, tuple[str, ...], Scores]:
    """A classifier of words, the words, and what its logits become.

    Args:
        model: A network for which ``has_two_towers`` is true.
        labels: The words, as a list or by their numbers.
        transform: Its processor, with ``tokenizer``.

    Raises:
        InputError: If words or tokenizer are missing.
        LabelError: If there is one word for a softmax, there are too many, or one is empty, too long or there twice.
    """
    tokenizer = getattr(transform, "tokenizer", None)
    words = list(labels.values()) if isinstance(labels, Mapping) else labels
    if tokenizer is None or isinstance(words, str) or not isinstance(words, Sequence):
        raise InputError(NEEDED)
    scores: Scores = "softmax" if getattr(model, "logit_bias", None) is None else "sigmoid"
    checked = check_words(words, 2 if scores == "softmax" else 1)
    return WordClassifier(model, checked, tokenizer).eval(), checked, scores


def check_words(words: Sequence[str], least: int) -> tuple[str, ...]:
    """The words as they are; ``LabelError`` for too few or many, and for one that is empty, too long or there twice."""
    if not all(isinstance(word, str) and 0 < len(word.strip()) <= MAX_CHARACTERS for word in words):
        raise LabelError(f"Each word must be a text of at most {MAX_CHARACTERS} characters, and not empty.")
    if not least <= len(words) <= MAX_WORDS or len(set(words)) < len(words):
        raise LabelError(f"Give {least} to {MAX_WORDS:,} different words: this network compares them.")
    return tuple(words)


def with_labels(ex: Exploration, labels: Sequence[str]) -> Exploration:
    """The result with other words, for a network of pictures and text; no other pass if it saw this picture last.

    Args:
        ex: The result.
        labels: The words.

    Raises:
        LabelError: If the network is another, or the words cannot be used; see ``explore``.
    """
    network, logits = ex.run(_with_words, labels)
    config = replace(ex.preset.config, num_classes=len(labels))
    preset = replace(ex.preset, labels=tuple(labels), config=config)
    new = replace(ex, preset=preset, logits=logits.numpy(), run_on_model=partial(run_in_memory, network))
    return new


@torch.no_grad()
def _with_words(
    model: TracedViT, pixels: Tensor, labels: Sequence[str], *, patch_size: int, kept_patches: Tensor | None = None
) -> tuple[TracedViT, Tensor]:
    """The same network with other words, and its logits ``[K]`` for a picture."""
    before = model.module
    if not isinstance(before, WordClassifier):
        raise LabelError("Only networks of pictures and text take other words: choose CLIP or SigLIP.")
    module = before.with_words(check_words(labels, 2 if before.is_softmax else 1))
    network = TracedViT(module, replace(model.config, num_classes=len(labels)), model.structure)
    network.scores = model.scores
    vector = before.vector_of(pixels) if kept_patches is None else None
    found = network(pixels, kept_patches=kept_patches) if vector is None else module.compare(vector)
    return network, found[0].float()
