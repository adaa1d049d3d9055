"""From a trace, or a network and an image, to heatmaps and to what they are worth. Imports torch and the network."""

from vit_demo.explain.attention import (
    attention_from,
    attention_matrix,
    attention_to,
    lay_out,
    log_normalisers,
    to_grid,
)
from vit_demo.explain.attnlrp import attnlrp
from vit_demo.explain.faithfulness import Faithfulness, blurred, faithfulness
from vit_demo.explain.lens import lens
from vit_demo.explain.methods import METHODS, Method, find_method
from vit_demo.explain.occlusion import occlusion
from vit_demo.explain.patch_dropping import patch_dropping
from vit_demo.explain.randomisation import randomisation
from vit_demo.explain.relevance import relevance
from vit_demo.explain.rollout import rollout
from vit_demo.explain.subsets import Progress
from vit_demo.explain.value_weighted import value_weighted

__all__ = [
    "METHODS",
    "Faithfulness",
    "Method",
    "Progress",
    "attention_from",
    "attention_matrix",
    "attention_to",
    "attnlrp",
    "blurred",
    "faithfulness",
    "find_method",
    "lay_out",
    "lens",
    "log_normalisers",
    "occlusion",
    "patch_dropping",
    "randomisation",
    "relevance",
    "rollout",
    "to_grid",
    "value_weighted",
]
