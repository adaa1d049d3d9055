"""Whether a preset's confidence in its predictions is low, as the page says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vit_demo.weights.preset import Preset


def is_confident(preset: Preset, probabilities: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether the confidence in predictions is not low.

    In an image of something else, one probability may be high while the rest is spread over many classes. The
    generalized entropy, the sum of ``sqrt(p (1 - p))`` over all classes, measures that rest (GEN with gamma 1/2; Liu,
    Lochman and Zach, CVPR 2023).

    Args:
        preset: Provides the limits of both.
        probabilities: ``[..., K]``, each row summing to 1.

    Returns:
        ``[...]``; False without classes.
    """
    entropy = np.sqrt(probabilities * (1 - probabilities).clip(0)).sum(-1)
    return (probabilities.max(-1, initial=0) >= preset.confidence_threshold) & (entropy <= preset.max_entropy)
