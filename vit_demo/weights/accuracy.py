"""What the page says about the accuracy of a preset at each patch size."""

from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.preset import Preset

EVERYDAY_PHOTOS: dict[str, tuple[int, dict[int, float]]] = {
    "photos-tiny": (357, {10: 79.0, 12: 80.4, 15: 80.7, 20: 74.5}),
}
"""Of presets whose record pools sets that differ: number of whole scenes, and accuracy on them in % by patch size.

``checkpoints/README.md`` has the figures of every set.
"""

PUBLISHED_TOP1: dict[str, dict[int, float]] = {
    "vit-ti16": {8: 64.8, 12: 75.2, 14: 76.1, 16: 75.5, 20: 71.7, 24: 64.3, 28: 54.5, 32: 36.1, 48: 2.7},
    "vit-s16": {8: 76.3, 12: 81.6, 14: 81.9, 16: 81.4, 20: 78.9, 24: 73.6, 28: 67.0, 32: 51.4, 48: 4.0},
    "vit-b16": {8: 80.0, 12: 84.3, 14: 84.9, 16: 84.5, 20: 82.8, 24: 78.7, 28: 73.3, 32: 58.9, 48: 5.1},
}
"""Top-1 of Hub checkpoints in % on ImageNet's validation set, kernels resampled by PI-resize, photos of 224 px; by
patch size.

From the README of ``flexivit-pytorch`` (Conrad, https://github.com/bwconrad/flexivit), which tries the PI-resize of
FlexiViT (Beyer et al., 2022, https://arxiv.org/abs/2212.08013) on timm's checkpoints.
"""


def accuracy_note(preset: Preset, patch_size: int) -> str:
    """One sentence about the test accuracy at a patch size; empty if it was not measured."""
    accuracy = bundled_accuracy(preset, patch_size)
    if accuracy is None:
        return ""
    count, _ = EVERYDAY_PHOTOS.get(preset.name, (0, {}))
    if count:
        return f"Right on {accuracy:.1f}\u00a0% of {count} everyday photos."
    return f"Right on {accuracy:.1f}\u00a0% of MNIST’s test digits."


def bundled_accuracy(preset: Preset, patch_size: int) -> float | None:
    """The accuracy in % at a patch size, on everyday photos or on MNIST; None if it was not measured."""
    if preset.name in EVERYDAY_PHOTOS:
        return EVERYDAY_PHOTOS[preset.name][1].get(patch_size)
    accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
    return None if accuracy is None else 100 * accuracy


def resampling_note(preset: Preset, patch_size: int) -> str:
    """One sentence about accuracy at a resampled patch size; empty for a size that the weights were trained for."""
    if not preset.is_resampled(patch_size):
        return ""
    native = preset.config.patch_size
    top1 = PUBLISHED_TOP1.get(preset.name, {})
    if patch_size in top1 and native in top1:
        resampled, trained = (f"{top1[size]}\u00a0%" for size in (patch_size, native))
        return f"Resampled from {native} px: ImageNet top-1 {resampled}, {trained} at {native} px (published)."
    return f"Resampled from {native} px; accuracy at this size is not published."
