"""What each patch is worth, from noisy sums over many patches at once: regression with a Gaussian process.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5. The worths are not free
numbers, as in a ridge regression, but a surface over the grid: neighbours are alike, and cheap maps of the same image
hint at its shape. How far neighbours resemble each other, whether the hints deserve trust and how noisy the sums are is
decided anew for every image by the evidence, the likelihood of what was seen.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

REACHES = (1 / 28, 1 / 14, 1 / 7)
"""How far neighbours may resemble each other, in shares of the grid's longer side."""

TRUSTS = (0.0, 1.0)
"""How large the part of the worths that follows a hint may be, beside the free part."""


def posterior_mean(present: Tensor, scores: Tensor, group: Tensor, places: Tensor, hints: Tensor) -> Tensor:
    """The likeliest worths, if ``scores = constant of the group + present @ worths + noise``.

    Args:
        present: ``[M, n]``, 1 where a patch was there.
        scores: ``[M]``.
        group: int64 ``[M]``, from 0: which scores have a constant term in common.
        places: ``[n, 2]``: where each patch lies, in shares of the grid's longer side.
        hints: ``[F, n]``: maps that may follow the worths; F may be 0.

    Returns:
        ``[n]`` float32, in the unit of the scores.
    """
    # In float64 on the CPU: the systems are small, M x M however fine the grid.
    x, y, places, hints = (tensor.cpu().double() for tensor in (present, scores[:, None], places, hints))
    x, y = _centred(x, group.cpu()), _centred(y, group.cpu())
    hints = hints - hints.mean(1, keepdim=True)
    hints = hints / hints.square().mean(1, keepdim=True).sqrt().clamp(min=1e-12)
    free = len(x) - int(group.max()) - 1  # the constants took one each
    best, found = -math.inf, torch.zeros(x.shape[1], dtype=torch.float64)
    distance = torch.cdist(places, places)  # [n, n]
    for reach in REACHES:
        near = (-0.5 * (distance / reach).square()).exp()
        for trust in TRUSTS if len(hints) else TRUSTS[:1]:
            prior = near + trust**2 * hints.T @ hints
            values, vectors = torch.linalg.eigh(x @ prior @ x.T)  # [M], [M, M]
            values, turned = values.clamp(min=0), vectors.T @ y  # [M], [M, 1]
            noises = values.max().clamp(min=1e-12) * torch.logspace(-5, 1, 25, dtype=torch.float64)
            spread = values + noises[:, None]  # [25, M]
            scale = (turned[:, 0].square() / spread).sum(1) / free
            logdet = spread.log().sum(1) - (len(x) - free) * noises.log()
            evidence = -0.5 * (free * scale.clamp(min=1e-300).log() + logdet)
            winner = int(evidence.argmax())
            if evidence[winner] > best:
                best = float(evidence[winner])
                found = (prior @ x.T @ (vectors @ (turned / spread[winner][:, None])))[:, 0]
    return found.float().to(present.device)


def _centred(values: Tensor, group: Tensor) -> Tensor:
    """``[M, n]`` less the mean of each group."""
    member = torch.nn.functional.one_hot(group).to(values.dtype)  # [M, G]
    return values - member @ (member.T @ values / member.sum(0)[:, None])
