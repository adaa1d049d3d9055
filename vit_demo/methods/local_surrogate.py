"""A local surrogate: which patches a class needs, estimated by a regression on random subsets of them.

A few hundred times, a random quarter or half of the patches enters the sequence and the others are dropped; a
regression then attributes the class's score to the patches that were present. A quarter of the tokens takes less than
a quarter of the time, and a ViT is robust to missing patches (Naseer et al., 2021, https://arxiv.org/abs/2105.10497),
so the scores are those of inputs that the network handles well, without grey squares. The attributions are a Gaussian
process over the grid; see ``posterior_mean``. The ranks of Libra FullGrad+ serve as a hint at its shape and are added
with a small weight at the end.

Related: LIME (Ribeiro et al., 2016) greys out superpixels, RISE (Petsiuk et al., 2018) uses soft masks.
"""

import math
from typing import Unpack

import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.libra_fullgrad import libra_fullgrad
from vit_demo.methods.registry import Option, register
from vit_demo.methods.subsets import Progress, log_probabilities, sequence_patches
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.trace import scatter_to_grid

KEEP_RATIOS = (0.25, 0.5, 0.5)
"""Shares of the patches that stay, each for an equal part of the budget. Few patches show what suffices for the class,
more show what it needs, which is harder to estimate."""

HINT_WEIGHT = 0.25
"""Weight of the hint beside the estimate, both in standard deviations. It improved deletion and insertion on photos set
aside for trials."""


LENGTH_SCALES = (1 / 28, 1 / 14, 1 / 7)  # distances over which attributions may be alike, in longer sides of the grid
HINT_SCALES = (0.0, 1.0)  # candidates for the scale of the part that follows a hint; the free part has scale 1


@register(
    "local_surrogate",
    title="Local surrogate",
    use="Where faithfulness matters more than speed.",
    class_specific=True,
    cost="many passes",
    unit="standard deviations of the score",
    signed=True,
    options=[
        Option(name="budget", kind="integer", bounds=(2 * len(KEEP_RATIOS), 10_000)),
        Option(name="seed", kind="integer", bounds=(0, 1_000_000)),
        Option(name="with_hint", kind="flag"),
    ],
)
def local_surrogate(
    model: TracedViT,
    images: Tensor,
    target: int,
    *,
    budget: int = 384,
    seed: int = 0,
    with_hint: bool = True,
    against: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> Tensor:
    """What the presence of each patch contributes to a class, estimated from hundreds of random subsets.

    ``budget`` is the number of subsets, ``seed`` determines them, ``with_hint`` uses Libra FullGrad+ as a hint. With
    ``against`` the score is the difference of both logits. Other parameters as in ``vit_demo.methods``. Values are in
    standard deviations of ``class_score``. ``InputError`` if the budget is too small.
    """
    if budget < 2 * len(KEEP_RATIOS):
        raise InputError(f"A budget of {budget} subsets is too small: choose {2 * len(KEEP_RATIOS)} or more.")
    grid, patches = sequence_patches(model, images, **options)
    parts = torch.arange(budget, device=images.device).chunk(len(KEEP_RATIOS))
    group = torch.cat([torch.full_like(part, index) for index, part in enumerate(parts)])
    present = torch.cat(
        [
            random_subsets(len(patches), len(part), ratio, seed * len(KEEP_RATIOS) + index)
            for index, (ratio, part) in enumerate(zip(KEEP_RATIOS, parts, strict=True))
        ]
    ).to(images.device)
    log_p = log_probabilities(model, images, target, present, against=against, progress=progress, **options)
    hints = torch.empty(0, len(patches), dtype=torch.float32)
    if with_hint:
        shares = libra_fullgrad(model, images, target, against=against, **options)
        hints = ranks(shares.flatten()[patches])[None]  # by rank, because a few large values would decide
    places = torch.stack([patches // grid[1], patches % grid[1]], dim=1).float() / max(grid)
    # A logit, a difference of two, or a function of them is unbounded on both sides, so it needs no transformation.
    is_log_p = against is None and model.scores != "none" and not callable(target)
    score = class_score(log_p) if is_log_p else _standardised(log_p)
    attribution = posterior_mean(present.float(), score, group, places, hints)
    for hint in hints:
        attribution = attribution + HINT_WEIGHT * attribution.std(correction=0) * _standardised(hint)
    return scatter_to_grid(attribution[None], grid, options.get("kept_patches"))


def random_subsets(count: int, budget: int, ratio: float, seed: int) -> Tensor:
    """``budget`` random subsets of ``count`` patches, all of ``max(1, ratio * count)``: bool ``[budget, count]``."""
    generator = torch.Generator().manual_seed(seed)
    size = max(1, round(ratio * count))
    return torch.rand(budget, count, generator=generator, dtype=torch.float32).argsort(1).argsort(1) < size


def ranks(values: Tensor) -> Tensor:
    """The rank of each value ``[n]``, float32 from 0 for the smallest to 1 for the largest; ties share their mean."""
    _, place, counts = values.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0) - 1
    return (last - (counts - 1).float() / 2)[place] / max(1, len(values) - 1)


def _standardised(values: Tensor) -> Tensor:
    return (values - values.mean()) / values.std(correction=0).clamp(min=1e-9)


def class_score(log_probabilities: Tensor) -> Tensor:
    """The score to be attributed, ``[M]``: log-odds plus root of the probability, each over its standard deviation.

    Evidence adds up in log-odds, but they also separate subsets in which the class is equally improbable; the root of
    the probability emphasises where the class becomes probable. The sum ranks patches better than either term or the
    log-probability. It is constant if all probabilities are equal.
    """
    p = log_probabilities.cpu().double().exp()  # on the CPU, because Apple GPUs have no float64
    parts = torch.stack([torch.special.logit(p, eps=1e-7), p.sqrt()])
    score = (parts / parts.std(1, keepdim=True).clamp(min=1e-9)).sum(0)
    return (score / score.std().clamp(min=1e-9)).float().to(log_probabilities.device)


def posterior_mean(present: Tensor, scores: Tensor, group: Tensor, places: Tensor, hints: Tensor) -> Tensor:
    """The most probable attributions, if ``scores = constant of the group + present @ attributions + noise``.

    Regression with a Gaussian process (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006,
    chapters 2 and 5). The attributions are not independent unknowns, as in ridge regression, but a smooth surface over
    the grid, to which cheap maps of the same image give a hint. The length scale, the scale of the hint and the noise
    are chosen for every image by the marginal likelihood (the evidence).

    Args:
        present: ``[M, n]``, 1 where a patch was in the sequence.
        scores: ``[M]``.
        group: int64 ``[M]``, from 0: which scores share a constant term.
        places: ``[n, 2]``: where each patch lies, in shares of the grid's longer side.
        hints: ``[F, n]``: maps that may resemble the attributions; F may be 0.

    Returns:
        ``[n]`` float32, in the unit of the scores.
    """
    # In float64 on the CPU: the systems are small, M x M however fine the grid.
    x, y, places, hints = (tensor.cpu().double() for tensor in (present, scores[:, None], places, hints))
    x, y = _centred(x, group.cpu()), _centred(y, group.cpu())
    hints = hints - hints.mean(1, keepdim=True)
    hints = hints / hints.square().mean(1, keepdim=True).sqrt().clamp(min=1e-12)
    degrees = len(x) - int(group.max()) - 1  # of freedom: each constant takes one
    best, mean = -math.inf, torch.zeros(x.shape[1], dtype=torch.float64)
    distance = torch.cdist(places, places)  # [n, n]
    for length_scale in LENGTH_SCALES:
        smooth = (-0.5 * (distance / length_scale).square()).exp()
        for hint_scale in HINT_SCALES if len(hints) else HINT_SCALES[:1]:
            prior = smooth + hint_scale**2 * hints.T @ hints
            values, vectors = torch.linalg.eigh(x @ prior @ x.T)  # [M], [M, M]
            values, rotated = values.clamp(min=0), vectors.T @ y  # [M], [M, 1]
            noises = values.max().clamp(min=1e-12) * torch.logspace(-5, 1, 25, dtype=torch.float64)
            evidence = log_evidence(values, rotated[:, 0], noises, degrees)
            winner = int(evidence.argmax())
            if evidence[winner] > best:
                best = float(evidence[winner])
                mean = (prior @ x.T @ (vectors @ (rotated / (values + noises[winner])[:, None])))[:, 0]
    return mean.float().to(present.device)


def log_evidence(values: Tensor, rotated: Tensor, noises: Tensor, degrees: int) -> Tensor:
    """The log marginal likelihood of centred scores for several levels of noise, up to a constant.

    The overall scale of signal and noise together is the one that maximises it.

    Args:
        values: ``[M]``: eigenvalues of the scores' prior covariance; 0 in the directions that centring removed.
        rotated: ``[M]``: the scores in the basis of its eigenvectors.
        noises: ``[S]``: variances of the noise.
        degrees: Degrees of freedom that centring left, at most M.

    Returns:
        ``[S]``.
    """
    spread = values + noises[:, None]  # [S, M]
    scale = (rotated.square() / spread).sum(1) / degrees
    # Centring removed M - degrees directions, in which only noise was counted.
    logdet = spread.log().sum(1) - (len(values) - degrees) * noises.log()
    return -0.5 * (degrees * scale.clamp(min=1e-300).log() + logdet)


def _centred(values: Tensor, group: Tensor) -> Tensor:
    """``[M, n]`` minus the mean of each group."""
    member = torch.nn.functional.one_hot(group).to(values.dtype)  # [M, G]
    return values - member @ (member.T @ values / member.sum(0)[:, None])
