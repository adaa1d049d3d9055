"""The learning rate over a run."""

from __future__ import annotations

import math

from vit_demo.training.recipes import Recipe


def learning_rate_at(step: int, total_steps: int, peak: float, recipe: Recipe) -> float:
    """Linear warm-up, then cosine decay to zero; plain Adam, as in the notebook, keeps a constant rate.

    Args:
        step: From 0.
        total_steps: Steps of the whole run.
        peak: The highest learning rate.
        recipe: Provides the optimiser and the length of the warm-up.
    """
    if recipe.optimiser == "adam":
        return peak
    warmup = max(1, round(recipe.warmup * total_steps))
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total_steps - warmup)))
