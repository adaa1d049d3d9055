"""From a trace to heatmaps. Imports torch and the network."""

from vit_demo.explain.attention import (
    attention_from,
    attention_matrix,
    attention_to,
    log_normalisers,
    to_grid,
)
from vit_demo.explain.rollout import rollout

__all__ = ["attention_from", "attention_matrix", "attention_to", "log_normalisers", "rollout", "to_grid"]
