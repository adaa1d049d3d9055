"""What the probe of a network in memory has found of its pixels and outputs, and what becomes of it."""

from dataclasses import replace

import torch

from vit_demo.images import MNIST_MEAN, MNIST_STD
from vit_demo.inference.inputs import ModelInput
from vit_demo.sentences import joined, sentence
from vit_demo.weights import Preset
from vit_demo.weights.hub.preprocessing import UNKNOWN

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
