"""What the page says about the accuracy of bundled weights: each test set by itself."""

from __future__ import annotations

from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.preset import Preset

TEST_SETS: dict[str, dict[str, tuple[int, dict[int, float]]]] = {
    "photos-tiny": {
        "Tiny ImageNet": (2000, {10: 72.0, 12: 73.4, 15: 72.4, 20: 68.3}),
        "Imagenette": (3925, {10: 88.3, 12: 87.7, 15: 86.8, 20: 82.5}),
    }
}
"""Of presets tested on several sets: number of photos, and accuracy in % by patch size (``checkpoints/README.md``).

The training record holds only the accuracy on all photos together, which says little, because the sets differ.
"""

EVERYDAY_PHOTOS: dict[str, tuple[int, dict[int, float]]] = {
    "photos-tiny": (357, {10: 79.0, 12: 80.4, 15: 80.7, 20: 74.5}),
}
"""Number of photos and accuracy as in ``TEST_SETS``, on whole scenes; they are not part of the record's figure."""


def accuracy_note(preset: Preset, patch_size: int) -> str:
    """One or two sentences about the test accuracy at a patch size; empty if it was not measured."""
    if preset.name in TEST_SETS:
        found = [(accuracies.get(patch_size), name) for name, (_, accuracies) in TEST_SETS[preset.name].items()]
    else:
        accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
        found = [(None if accuracy is None else 100 * accuracy, "MNIST")]
    parts = [f"{accuracy:.1f}\u00a0% ({name})" for accuracy, name in found if accuracy is not None]
    note = f"Test accuracy {', '.join(parts)}." if parts else ""
    count, accuracies = EVERYDAY_PHOTOS.get(preset.name, (0, {}))
    if patch_size not in accuracies:
        return note
    share = f"{accuracies[patch_size]:.1f}\u00a0%"
    return " ".join((f"Right on {share} of {count} everyday photos.", note))
