"""Patch dropping, a method of this package: which patches a class needs, learned by leaving most of them out.

Attention says what was read, gradients what would change at the margin. This asks the network itself: a few hundred
times a random quarter or half of the patches enters the sequence, the others are dropped, and the class's score is
explained by what the patches that were there are worth. A quarter of the tokens costs less than
a quarter of the time, and a ViT takes missing patches in its stride (Naseer et al., 2021,
https://arxiv.org/abs/2105.10497), so the answers are those of the network on a picture it can read, with nothing grey
standing in. The worths are a Gaussian process over the grid; see ``gaussian_process``. Relevance and AttnLRP, by their
mean rank a better map than either, hint at its shape and have a small say at the end.

Related: LIME (Ribeiro et al., 2016) with superpixels turned grey, RISE (Petsiuk et al., 2018) with soft masks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.attention import lay_out
from vit_demo.methods.attnlrp import attnlrp
from vit_demo.methods.gaussian_process import posterior_mean
from vit_demo.methods.ranks import ranks
from vit_demo.methods.relevance import relevance
from vit_demo.methods.subsets import Progress, log_probabilities, patches_of
from vit_demo.model import ViT

SHARES = (0.25, 0.5, 0.5)
"""Of the patches that stay, each for one part of the budget. Few patches show what is enough for the class, more show
what it cannot do without, which is the harder question."""

SAY = 0.25
"""Of the hint, beside what the subsets taught, both in standard deviations. It settles what some hundred answers leave
open: on photos set aside for trials, deletion and insertion both gained."""


def patch_dropping(
    model: ViT,
    images: Tensor,
    target: int,
    *,
    budget: int = 384,
    seed: int = 0,
    with_hint: bool = True,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """What the presence of each patch is worth to a class; see the top of this file.

    Args:
        model: In eval mode.
        images: ``[1, C, height, width]``, normalised.
        target: The class.
        budget: How many random subsets are asked about.
        seed: Of the subsets.
        with_hint: Whether relevance and AttnLRP may hint at the worths.
        patch_size: As in ``ViT.forward``.
        keep: ``[1, K]``: only these are in the sequence to begin with.
        progress: Told after every batch.

    Returns:
        ``[1, rows, cols]`` float32, in the unit of ``class_score``: below 0 where a patch speaks against the class, 0
        where it was not in the sequence.

    Raises:
        InputError: If the budget leaves nothing to learn from.
    """
    if budget < 2 * len(SHARES):
        raise InputError(f"A budget of {budget} leaves nothing to learn from: ask about {2 * len(SHARES)} or more.")
    grid, patches = patches_of(model, images, patch_size, keep)
    present, scores, group = [], [], []
    counts = [len(part) for part in torch.arange(budget).chunk(len(SHARES))]
    for index, (share, count) in enumerate(zip(SHARES, counts, strict=True)):

        def tell(asked: int, _: int, before: int = sum(counts[:index])) -> None:
            if progress is not None:
                progress(before + asked, budget)

        chosen = random_subsets(len(patches), count, share, seed * len(SHARES) + index).to(images.device)  # [M, K]
        kept = patches[chosen]
        scores.append(log_probabilities(model, images, target, kept, patch_size=patch_size, progress=tell))
        present.append(torch.zeros(count, len(patches), device=images.device).scatter(1, chosen, 1.0))
        group.append(torch.full((count,), index))
    hints = torch.empty(0, len(patches))
    if with_hint:
        maps = [
            relevance(model, images, target, patch_size=patch_size, keep=keep, average_heads_first=True),
            attnlrp(model, images, target, patch_size=patch_size, keep=keep),
        ]
        # By rank, for their scales mean nothing.
        hints = torch.stack([ranks(one.flatten()[patches]) for one in maps]).mean(0, keepdim=True)
    places = torch.stack([patches // grid[1], patches % grid[1]], dim=1) / max(grid)
    worth = posterior_mean(torch.cat(present), class_score(torch.cat(scores)), torch.cat(group), places, hints)
    for hint in hints:
        worth = worth + SAY * worth.std(correction=0) * _standardised(hint)
    return lay_out(worth[None], grid, keep)


def random_subsets(count: int, budget: int, share: float, seed: int) -> Tensor:
    """``budget`` random subsets of ``count`` things, all of one size: int64 ``[budget, max(1, share * count)]``."""
    generator = torch.Generator().manual_seed(seed)
    size = max(1, round(share * count))
    return torch.rand(budget, count, generator=generator).argsort(1)[:, :size]


def _standardised(values: Tensor) -> Tensor:
    return (values - values.mean()) / values.std(correction=0).clamp(min=1e-9)


def class_score(log_probabilities: Tensor) -> Tensor:
    """What is to be explained: log-odds and the root of the probability, each over its standard deviation.

    Evidence adds up in log-odds, but they also tell apart what is equally hopeless; the root of the probability looks
    at where the class is won or lost. Together they rank patches better than either, or than the logarithm, does.

    Args:
        log_probabilities: ``[M]``.

    Returns:
        ``[M]`` float32; 1 is about half the usual swing between subsets.
    """
    p = log_probabilities.cpu().double().exp()  # on the CPU, for Apple's GPUs have no float64
    parts = torch.stack([torch.special.logit(p, eps=1e-7), p.sqrt()])
    return (parts / parts.std(1, keepdim=True).clamp(min=1e-9)).sum(0).float().to(log_probabilities.device)
