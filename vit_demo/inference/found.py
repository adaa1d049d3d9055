"""What is known of a network in memory, what its probe has found of its pixels and outputs, and what becomes of it."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from vit_demo.images import MNIST_MEAN, MNIST_STD
from vit_demo.inference.inputs import ModelInput
from vit_demo.inference.labels import Labels, class_names
from vit_demo.scores import Scores, scores_for
from vit_demo.sentences import joined, sentence
from vit_demo.trace import TracedViT
from vit_demo.weights import Preset
from vit_demo.weights.hub.preprocessing import PREPARED, UNKNOWN, Preprocessing
from vit_demo.words.classifier import WordClassifier
from vit_demo.words.texts import AS_TYPED

CHANGED = (
    "This network changes its pixels by more than a factor and an offset for each channel, such as by a resize, so "
    "nothing says which it takes: pass transform= with what makes its input, or the network inside it."
)
ONLY_IN_MEMORY = "{0} is for networks in memory: pass one as the model."
OVERLAPS = "Each of its tokens sees more of a picture than its own square."
UNCLEAR = (
    'Its outputs are numbers from 0 to 1, which are taken for logits: pass scores="none" if they are probabilities.'
)


def unnormalised(given: ModelInput, preset: Preset, scale: float, is_known: bool) -> tuple[ModelInput, Preset]:
    """The pixels of a network that normalises by itself, from 0 to ``scale``, and its preset."""
    if not scale:
        return given, preset
    is_digit, channels = preset.task == "digits", given.pixels.shape[1]
    known = ((MNIST_MEAN,), (MNIST_STD,)) if is_digit else (preset.mean, preset.std)
    mean, std = (torch.tensor(values).reshape(-1, 1, 1) for values in known)
    alone = sentence("It normalises its pixels by itself, so they are from 0 to {0}.", f"{scale:.0f}")
    assumed = joined(preset.assumed, alone)
    if not is_known and not is_digit:
        fitted = f": {preset.image_size} pixels, the central square and bicubic are assumed."
        assumed = joined(UNKNOWN + fitted, alone, "Pass transform= if that is wrong.")
    preset = replace(preset, mean=(0.0,) * channels, std=(1 / scale,) * channels, assumed=assumed)
    return replace(given, pixels=scale * (given.pixels * std + mean)), preset


def with_notes(assumed: str, overlaps: bool, is_unclear: bool) -> str:
    """A note with what else must be said of a network."""
    return joined(assumed, OVERLAPS if overlaps else "", UNCLEAR if is_unclear else "")


_numbers = itertools.count(1)
_modules: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def preset_of(module: nn.Module, network: TracedViT, known: Preprocessing, labels: Labels | None) -> Preset:
    """What is known of a network, as that of a preset."""
    config, tensors = network.config, list(module.parameters())
    is_digit = config.in_channels == 1 and config.image_size == 28 and not known.is_known
    names, note = class_names(known.labels, config.num_classes, labels)
    return Preset(
        name=type(module).__name__,
        title=type(module).__name__,
        task="digits" if is_digit else "photos",
        config=config,
        labels=names,
        patch_sizes=(network.patch_size,),
        default_patch_size=network.patch_size,
        flexible=False,
        source="memory",
        parameters=sum(parameter.numel() for parameter in tensors),
        **{name: getattr(known, name) for name in PREPARED},
        scores=network.scores,
        takes_words=isinstance(module, WordClassifier),
        template=module.template if isinstance(module, WordClassifier) else AS_TYPED,
        assumed="" if is_digit else joined(known.note, note),
        note=note,
        # Its weights may change unseen, so tokens of another time, which are kept under this, are not its own.
        revision=f"{_weights_of(module, tensors)}.{next(_numbers)}",
    )


def _weights_of(module: nn.Module, tensors: Sequence[Tensor]) -> str:
    """A text that is the same for a network with the same weights, and for nothing else in memory meanwhile."""
    subject = module.vision_model if isinstance(module, WordClassifier) else module  # whatever its words
    number = _modules.setdefault(subject, next(_numbers))
    kept = (x for x in (*tensors, *module.buffers()) if not x.is_inference() and not x.is_meta)
    seen = [(x.data_ptr(), x._version) for x in kept]
    last = [x.detach().flatten()[-1:].tolist() for x in tensors[-4:]]  # a change of x.data has no version
    return f"{number}:{hash(str((seen, last)))}"


def channels_of(module: nn.Module) -> int:
    """The channels of a network's pictures, as far as its first convolution tells; 3 otherwise."""
    convolutions = (layer.in_channels for layer in module.modules() if isinstance(layer, nn.Conv2d))
    return next((n for n in convolutions if n <= 16), 3)  # more are those of patches that were folded into channels


def with_scores(
    network: TracedViT, scores: Scores | Literal["auto"], problem_type: str, *, is_named: bool
) -> TracedViT:
    """The network with what its outputs become; one without a head gives an embedding unless its classes are named."""
    if scores == "auto" and not is_named and not network.structure.has_head:
        network.config = replace(network.config, num_classes=0)
    usual = scores_for(problem_type, network.config.num_classes)
    found = network.already if network.already in ("softmax", "sigmoid") and usual != "none" else usual
    network.scores = found if scores == "auto" else scores
    network.already = network.already if network.scores == network.already else ""
    return network
