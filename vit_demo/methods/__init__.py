"""Explanation methods: from a trace, or a network and an image, to heatmaps. Imports torch and the network."""

from vit_demo.methods.attention import (
    attention_from,
    attention_matrix,
    attention_to,
    lay_out,
    log_normalisers,
    to_grid,
)
from vit_demo.methods.attnlrp import attnlrp
from vit_demo.methods.chunking import memory_budget
from vit_demo.methods.occlusion import occlusion
from vit_demo.methods.patch_dropping import patch_dropping
from vit_demo.methods.registry import METHODS, Method, find_method
from vit_demo.methods.relevance import relevance
from vit_demo.methods.rollout import rollout
from vit_demo.methods.subsets import Progress
from vit_demo.methods.value_weighted import value_weighted

__all__ = [
    "METHODS",
    "Method",
    "Progress",
    "attention_from",
    "attention_matrix",
    "attention_to",
    "attnlrp",
    "find_method",
    "lay_out",
    "log_normalisers",
    "memory_budget",
    "occlusion",
    "patch_dropping",
    "relevance",
    "rollout",
    "to_grid",
    "value_weighted",
]
