"""The optimisers of a recipe, and which parameters each of them updates."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer

from vit_demo.training.recipes import Recipe

BETAS = (0.9, 0.98)


def make_optimisers(model: nn.Module, recipe: Recipe, learning_rate: float) -> list[Optimizer]:
    """One optimiser, or Muon for the matrices inside the blocks and AdamW for all other parameters.

    Muon orthogonalises the update of each matrix (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/).
    Scaled as by Liu et al. (2025, https://arxiv.org/abs/2502.16982), it works with AdamW's learning rates.

    Args:
        model: The network to train.
        recipe: Provides the kind of optimiser and the weight decay.
        learning_rate: The initial one; the training loop sets it before each step.
    """
    if recipe.optimiser == "adam":
        return [torch.optim.Adam(model.parameters(), lr=learning_rate)]
    muon = []
    if recipe.optimiser == "muon":
        muon = [p for name, p in model.named_parameters() if ".blocks." in f".{name}" and p.ndim == 2]
    muon_ids = {id(p) for p in muon}
    rest = [p for p in model.parameters() if id(p) not in muon_ids]
    groups = [
        {"params": [p for p in rest if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimisers: list[Optimizer] = [torch.optim.AdamW(groups, lr=learning_rate, betas=BETAS)]
    if muon:
        optimisers.append(
            torch.optim.Muon(muon, lr=learning_rate, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw")
        )
    return optimisers


def set_learning_rate(optimisers: list[Optimizer], learning_rate: float) -> None:
    """Sets the learning rate of all parameter groups."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = learning_rate
