"""ImageNet: the names of its classes, and the means and deviations by which networks expect their input."""

from pathlib import Path
from typing import Any

IMAGENET_LABELS: tuple[str, ...] = tuple(
    Path(__file__).with_name("imagenet_labels.txt").read_text(encoding="utf-8").splitlines()
)
"""The 1,000 classes, in the usual order, with torchvision's names."""
IMAGENET_ASSUMED = "It does not name its 1,000 classes: they are taken for ImageNet's."

IMAGENET_INCEPTION: dict[str, Any] = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
IMAGENET_DEFAULT: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
CLIP: dict[str, Any] = {"mean": (0.48145466, 0.4578275, 0.40821073), "std": (0.26862954, 0.26130258, 0.27577711)}
