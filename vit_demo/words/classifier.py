"""A network of pictures and text as a classifier, whose classes are words."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.trace import TracedViT
from vit_demo.trace.other_head import replace_part
from vit_demo.trace.running import in_eval
from vit_demo.words.texts import texts_of

Tokenize = Callable[[list[str]], Mapping[str, Tensor]]  # from texts to ``input_ids`` ``[K, N]``, at least
MAX_VECTORS = 5000  # texts whose vectors are kept, about; at 768 numbers each they take 15 MB
MAX_SEEN = 8  # pictures whose vectors are kept, so that other words need no other pass
CHUNK = 64  # texts that are encoded together

_is_whole: ContextVar[bool] = ContextVar("is_whole", default=False)


@contextmanager
def whole_pass() -> Iterator[None]:
    """A pass of all patches through the network as it is, whose vector may be kept; others see the same picture."""
    token = _is_whole.set(True)
    try:
        yield
    finally:
        _is_whole.reset(token)


def _version(module: nn.Module) -> int:
    """Changes when weights are changed in place, as by an optimizer."""
    return sum(0 if parameter.is_inference() else parameter._version for parameter in module.parameters())


class TextTower:
    """The text half of a network, ``CLIPModel`` or one like it; each text is encoded once, and its vector kept."""

    def __init__(self, model: Any, tokenize: Tokenize) -> None:
        self._model, self._tokenize = model, tokenize
        self._kept: tuple[int, dict[str, Tensor]] = (0, {})  # of a version; replaced, never changed in place

    def __deepcopy__(self, memo: Any) -> TextTower:
        """A copy of a picture tower reads the same texts."""
        return self

    @property
    def num_bytes(self) -> int:
        """Memory of the text half's parameters."""
        return sum(parameter.nbytes for parameter in self._model.text_model.parameters())

    @torch.inference_mode(False)
    @torch.no_grad()
    def vectors(self, texts: Sequence[str]) -> Tensor:
        """The normalised vector of each text, ``[K, D]``, on the device of the text tower."""
        version, kept = self._kept
        if version != (current := _version(self._model)):
            kept = {}
        found = {text: kept[text] for text in texts if text in kept}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(new), CHUNK):
            part = new[start : start + CHUNK]
            found.update(zip(part, self._encode(part), strict=True))
        if new:  # without a lock, which a fork of this process might copy while it is held
            self._kept = current, {**(kept if len(kept) < MAX_VECTORS else {}), **found}
        return torch.stack([found[text] for text in texts])

    def _encode(self, texts: list[str]) -> Tensor:
        device = self._model.logit_scale.device
        tokens = {name: tensor.to(device) for name, tensor in self._tokenize(texts).items()}
        with in_eval(self._model.text_model):
            found = self._model.get_text_features(**tokens)
        return F.normalize(found if isinstance(found, Tensor) else found.pooler_output, dim=-1)


class Similarity(nn.Module):
    """The logits of pictures by their vectors, as the head of a network of pictures and text."""

    text: Tensor
    bias: Tensor

    def __init__(self, text: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.in_features = text.shape[1]
        self.register_buffer("text", text)  # [K, D]
        self.register_buffer("bias", bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits ``[B, K]`` of vectors ``[B, D]``."""
        return F.normalize(vectors, dim=-1) @ self.text.mT + self.bias


class WordClassifier(nn.Module):
    """The similarity of pictures to words as logits: a picture tower, and the vectors that a text tower made of words.

    With CLIP's scale a softmax compares the words (Radford et al., 2021, https://arxiv.org/abs/2103.00020); with
    SigLIP's scale and bias each has a probability of its own (Zhai et al., 2023, https://arxiv.org/abs/2303.15343).
    The picture tower is the model's own, not a copy.

    Attributes:
        texts: The text tower; None for a network whose shape alone is wanted.
        words: One for each class.
        template: The text of a word, with ``{}`` in its place.
        is_softmax: Whether the probabilities compare the words.
        compare: From the vectors of pictures to logits: its head.
    """

    scale: Tensor

    def __init__(self, model: Any, tokenize: Tokenize | None, words: Sequence[str], template: str) -> None:
        super().__init__()
        self.vision_model: nn.Module = model.vision_model
        self.projection: nn.Module = getattr(model, "visual_projection", None) or nn.Identity()
        self.texts = TextTower(model, tokenize) if tokenize else None
        self.words, self.template = tuple(words), template
        self.is_softmax = getattr(model, "logit_bias", None) is None
        self._seen = deque[tuple[int, Tensor, Tensor]](maxlen=MAX_SEEN)  # version, picture, vector; for all words
        with torch.inference_mode(False), torch.no_grad():
            self.register_buffer("scale", model.logit_scale.exp())
            bias = torch.zeros_like(self.scale) if self.is_softmax else model.logit_bias.detach().clone()
            width = getattr(self.projection, "out_features", 0) or model.vision_model.config.hidden_size
            self.compare = Similarity(self.scale.new_zeros(len(words), width), bias)
            if self.texts:
                self.compare = self.similarity(words, template)
        self.eval()

    @torch.inference_mode(False)
    def similarity(self, words: Sequence[str], template: str) -> Similarity:
        """The head for words, which are encoded unless they were before."""
        assert self.texts is not None, "a network whose shape alone is known takes no words"
        vectors = self.texts.vectors(texts_of(words, template)).to(self.scale)
        return Similarity(vectors * self.scale, self.compare.bias)

    @property
    def num_bytes_elsewhere(self) -> int:
        """Memory of what is no part of it: the text tower."""
        return self.texts.num_bytes if self.texts else 0

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``[B, K]`` of images ``[B, 3, height, width]``."""
        vectors = self.projection(self.vision_model(pixel_values=images).pooler_output)  # [B, D]
        if _is_whole.get() and len(images) == 1:
            self._seen.append((_version(self), images.detach(), vectors.detach()))
        logits: Tensor = self.compare(vectors)
        return logits

    def vector_of(self, image: Tensor) -> Tensor | None:
        """The vector ``[1, D]`` of a picture ``[1, 3, height, width]`` that it saw whole lately; None of any other."""
        now = _version(self)
        known = ((seen, vector) for version, seen, vector in list(self._seen) if version == now)
        return next((vector for seen, vector in known if torch.equal(seen, image.to(seen))), None)


def with_words(network: TracedViT, words: Sequence[str], template: str) -> TracedViT:
    """The network with other words; one that takes none, or has these, as it is."""
    module = network.module
    if not isinstance(module, WordClassifier) or (module.words, module.template) == (tuple(words), template):
        return network
    other = replace_part(network, "compare", module.similarity(words, template), len(words))
    vars(other.module).update(words=tuple(words), template=template)
    return other
