"""Whether a heatmap is faithful, and how few patches are enough. Imports torch, the network and the methods."""

from vit_demo.defaults import Baseline
from vit_demo.metrics.faithfulness import Faithfulness, baseline_image, blur, faithfulness
from vit_demo.metrics.minimal_sets import PatchSet, necessary_set, sufficient_set
from vit_demo.metrics.randomization import randomization

__all__ = [
    "Baseline",
    "Faithfulness",
    "PatchSet",
    "baseline_image",
    "blur",
    "faithfulness",
    "necessary_set",
    "randomization",
    "sufficient_set",
]
