"""What the page says about the accuracy of bundled weights."""

from __future__ import annotations

from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.preset import Preset

EVERYDAY_PHOTOS: dict[str, tuple[int, dict[int, float]]] = {
    "photos-tiny": (357, {10: 79.0, 12: 80.4, 15: 80.7, 20: 74.5}),
}
"""Of presets whose record pools sets that differ: number of whole scenes, and accuracy on them in % by patch size.

``checkpoints/README.md`` has the figures of every set.
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
    return _recorded(preset, patch_size)


def _recorded(preset: Preset, patch_size: int) -> float | None:
    accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
    return None if accuracy is None else 100 * accuracy
