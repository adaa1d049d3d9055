"""Patch dropping, a method of this package: which patches a class needs, learned from random quarters of the image.

Attention says what was read, gradients what would change at the margin. This asks the network itself: a few hundred
times a random quarter of the patches enters the sequence, the others are dropped, and a linear model is fitted to the
logarithm of the class's probability. Each patch's weight says what its presence is worth among random company. A
quarter costs less than a quarter of the time, and a ViT takes missing patches in its stride (Naseer et al., 2021), so
the answers are those of the network on a picture it can read, with nothing grey standing in.

Related: LIME (Ribeiro et al., 2016) with superpixels turned grey, RISE (Petsiuk et al., 2018) with soft masks.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.explain.attention import lay_out
from vit_demo.explain.ranks import ranks
from vit_demo.explain.relevance import relevance
from vit_demo.explain.subsets import Progress, log_probabilities, patches_of
from vit_demo.vit import ViT

SMOOTH_FROM = 100
"""From this many patches neighbours are averaged: one patch of many is worth too little to be measured alone."""


def patch_dropping(
    model: ViT,
    images: Tensor,
    target: int,
    *,
    budget: int = 384,
    share: float = 0.25,
    seed: int = 0,
    with_relevance: bool = True,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Fits what each patch is worth to a class; see the top of this file.

    Args:
        model: In eval mode.
        images: ``[1, C, height, width]``, normalised.
        target: The class.
        budget: How many random subsets are asked about.
        share: Of the patches that stay, above 0 and below 1.
        seed: Of the subsets.
        with_relevance: Give the mean of this map's ranks and those of ``relevance``: they err in different places.
        patch_size: As in ``ViT.forward``.
        keep: ``[1, K]``: only these are in the sequence to begin with.
        progress: Told after every batch.

    Returns:
        ``[1, rows, cols]`` float32: mean ranks in [0, 1], or without relevance each patch's weight in the logarithm of
        the probability, below 0 where it speaks against the class. 0 where a patch was not in the sequence.

    Raises:
        ValueError: If the share or the budget leaves nothing to fit.
    """
    grid, patches = patches_of(model, images, patch_size, keep)
    if not 0 < share < 1 or budget < 2:
        raise ValueError(f"A share of {share} and a budget of {budget} cannot be fitted: try 0.25 and 384.")
    chosen = random_subsets(len(patches), budget, share, seed).to(images.device)  # [M, K]
    scores = log_probabilities(model, images, target, patches[chosen], patch_size=patch_size, progress=progress)
    present = torch.zeros(budget, len(patches), device=images.device).scatter(1, chosen, 1.0)
    there = lay_out(torch.ones_like(patches, dtype=torch.float32)[None], grid, keep)  # [1, rows, cols]
    worth = lay_out(fit(present, scores)[None], grid, keep)
    if len(patches) >= SMOOTH_FROM:
        worth = smooth(worth, there)
    if not with_relevance:
        return worth
    other = relevance(model, images, target, patch_size=patch_size, keep=keep)
    mean = (ranks(worth.flatten()[patches]) + ranks(other.flatten()[patches])) / 2
    return lay_out(mean[None].float(), grid, keep)


def random_subsets(count: int, budget: int, share: float, seed: int) -> Tensor:
    """``budget`` random subsets of ``count`` things, all of one size: int64 ``[budget, max(1, share * count)]``."""
    generator = torch.Generator().manual_seed(seed)
    size = max(1, round(share * count))
    return torch.rand(budget, count, generator=generator).argsort(1)[:, :size]


def fit(present: Tensor, scores: Tensor) -> Tensor:
    """Ridge regression whose strength is chosen by generalised cross-validation (Golub et al., 1979).

    Args:
        present: ``[M, n]``, 1 where a patch was there.
        scores: ``[M]``.

    Returns:
        The weights ``[n]`` float32; the constant term is left out.
    """
    # In the dual, so that the systems stay M x M however fine the grid; in float64 on the CPU, as they are small.
    x, y = present.cpu().double(), scores.cpu().double()
    x, y = x - x.mean(0), y - y.mean()
    values, vectors = torch.linalg.eigh(x @ x.T)  # [M], [M, M]
    values = values.clamp(min=0)
    turned = vectors.T @ y
    strengths = values.max().clamp(min=1e-12) * torch.logspace(-6, 2, 65, dtype=torch.float64)
    shrunk = strengths[:, None] / (values + strengths[:, None])  # [65, M]: what is left unexplained
    freedom = shrunk.sum(1) - 1  # the mean took one
    error = (shrunk * turned).square().sum(1) / freedom.clamp(min=1e-9).square()
    best = strengths[error.argmin()]
    weights = x.T @ (vectors @ (turned / (values + best)))
    return weights.float().to(present.device)


def smooth(values: Tensor, there: Tensor) -> Tensor:
    """The mean over 3 x 3 neighbours that are there, of ``[1, rows, cols]``."""
    total, count = (F.avg_pool2d(one[None], 3, stride=1, padding=1)[0] for one in (values * there, there))
    return torch.where(there > 0, total / count.clamp(min=1e-9), 0.0)
