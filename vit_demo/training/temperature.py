"""Temperature scaling: calibrates a network's confidence without changing its predictions.

After Guo et al., 2017, https://arxiv.org/abs/1706.04599.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT
from vit_demo.training.predictions import Predictions


def fit_temperature(predictions: list[Predictions]) -> float:
    """The temperature that minimises the mean loss, each source of the data counting equally.

    Validation sets differ much in size. If each image counted equally, the largest set alone would decide.

    Args:
        predictions: For validation data, at one or several patch sizes.

    Returns:
        The number to divide logits by.
    """
    groups = [group for found in predictions for group in found.by_source()]
    log_temperature = torch.zeros((), requires_grad=True)
    optimiser = torch.optim.LBFGS([log_temperature], max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        losses = [F.cross_entropy(group.logits / log_temperature.exp(), group.labels) for group in groups]
        loss = torch.stack(losses).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    return log_temperature.exp().item()


def apply_temperature(model: ViT, temperature: float) -> None:
    """Divides the weights and the bias of the head by a temperature, and with them all logits."""
    with torch.no_grad():
        for parameter in cast(nn.Linear, model.head).parameters():
            parameter.div_(temperature)
