"""The optimisers of a recipe: which of torch's, and what each of them moves."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer

from vit_demo.training.recipes import Recipe

BETAS = (0.9, 0.98)


def make_optimisers(model: nn.Module, recipe: Recipe, learning_rate: float) -> list[Optimizer]:
    """One optimiser, or Muon for the matrices inside the blocks and AdamW for all else.

    Muon makes each update of a matrix nearly orthogonal (Jordan et al., 2024); scaled as Liu et al.
    (2025, https://arxiv.org/abs/2502.16982) do, it is at home with AdamW's learning rates.

    Args:
        model: What to train.
        recipe: Names the optimiser and the weight decay.
        learning_rate: At first; the loop changes it before each step.
    """
    if recipe.optimiser == "adam":
        return [torch.optim.Adam(model.parameters(), lr=learning_rate)]
    inner = []
    if recipe.optimiser == "muon":
        inner = [p for name, p in model.named_parameters() if ".blocks." in f".{name}" and p.ndim == 2]
    taken = {id(p) for p in inner}
    rest = [p for p in model.parameters() if id(p) not in taken]
    decayed = [p for p in rest if p.ndim > 1]
    optimisers: list[Optimizer] = [
        torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": recipe.weight_decay},
                {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0},
            ],
            lr=learning_rate,
            betas=BETAS,
        )
    ]
    if inner:
        optimisers.append(
            torch.optim.Muon(inner, lr=learning_rate, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw")
        )
    return optimisers
