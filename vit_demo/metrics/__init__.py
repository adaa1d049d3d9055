"""Whether a heatmap is faithful: deletion, insertion and randomization. Imports torch, the network and the methods."""

from vit_demo.defaults import Baseline
from vit_demo.metrics.baselines import baseline_image, blur
from vit_demo.metrics.faithfulness import Faithfulness, faithfulness, random_orders
from vit_demo.metrics.randomization import randomization

__all__ = ["Baseline", "Faithfulness", "baseline_image", "blur", "faithfulness", "random_orders", "randomization"]
