"""Whether a heatmap is faithful, and how few patches or heads are enough. Imports torch, network and methods."""

from vit_demo.defaults import Baseline
from vit_demo.metrics.faithfulness import Faithfulness, baseline_image, blur, faithfulness
from vit_demo.metrics.heads import HeadSet, head_effects, sufficient_heads
from vit_demo.metrics.minimal_sets import PatchSet, Tried, necessary_set, sufficient_set
from vit_demo.metrics.randomization import randomization

__all__ = [
    "Baseline",
    "Faithfulness",
    "HeadSet",
    "PatchSet",
    "Tried",
    "baseline_image",
    "blur",
    "faithfulness",
    "head_effects",
    "necessary_set",
    "randomization",
    "sufficient_heads",
    "sufficient_set",
]
