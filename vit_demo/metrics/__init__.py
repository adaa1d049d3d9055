"""Whether a heatmap is faithful: deletion, insertion and randomization. Imports torch, the network and the methods."""

from vit_demo.metrics.faithfulness import Faithfulness, blurred, faithfulness
from vit_demo.metrics.randomization import randomisation

__all__ = ["Faithfulness", "blurred", "faithfulness", "randomisation"]
