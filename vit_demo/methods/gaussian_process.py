"""The attribution of each patch from noisy sums over many patches: regression with a Gaussian process.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5. The attributions are not
independent unknowns, as in ridge regression, but a smooth surface over the grid, to which cheap maps of the same image
give a hint. The length scale, the scale of the hint and the noise are chosen for every image by the marginal likelihood
(the evidence).
"""

import math

import torch
from torch import Tensor

LENGTH_SCALES = (1 / 28, 1 / 14, 1 / 7)
"""Candidates for the distance over which attributions are similar, as shares of the grid's longer side."""

HINT_SCALES = (0.0, 1.0)
"""Candidates for the scale of the part that follows a hint; the free part has scale 1."""


def posterior_mean(present: Tensor, scores: Tensor, group: Tensor, places: Tensor, hints: Tensor) -> Tensor:
    """The most probable attributions, if ``scores = constant of the group + present @ attributions + noise``.

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
