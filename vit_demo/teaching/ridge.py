"""Ridge regression (Hoerl and Kennard, 1970) on the tokens that a classifier head reads, as that head.

All classes are taken to be equally likely, however many examples each has: the head's outputs are 0 on average over the
classes' mean tokens. Leaving out one example at a time needs no other fit: of a linear smoother with hat matrix H, the
residual of an example that was left out is its residual over ``1 - H_ii`` (Allen's PRESS, 1974). By it shrinkage and
temperature are chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHRINKAGES = np.logspace(-2, 2, 17)  # those tried, in units of the mean squared norm of a centred example
TEMPERATURES = np.logspace(-2.5, 0.5, 61)  # those tried, for outputs whose targets differ by 1


class Ridge(NamedTuple):
    """A linear head, and what was found while each example was left out.

    Attributes:
        weight: ``[K, D]``; divided by the temperature, like the bias.
        bias: ``[K]``.
        shrinkage: What is added to the diagonal of the tokens' scatter matrix.
        temperature: By which the regression's outputs are divided before a softmax.
        left_out: ``[N, K]``: the probabilities of each example by a head that has not seen it.
    """

    weight: Floats
    bias: Floats
    shrinkage: float
    temperature: float
    left_out: Floats


def ridge(tokens: Floats, classes: NDArray[np.intp]) -> Ridge:
    """The head for tokens ``[N, D]`` of examples and their classes ``[N]``, from 0 to K - 1, at least one of each."""
    # Of 0 and 1, all logits would add up to 1, as probabilities do, for which they are not to be taken.
    targets = np.eye(count := classes.max() + 1)[classes] - 1 / count  # [N, K]
    center, mean = tokens.mean(0), targets.mean(0)
    u, s, vt = np.linalg.svd(tokens - center, full_matrices=False)  # [N, R], [R], [R, D]
    projected = u.T @ (targets - mean)  # [R, K]
    unit = max(float((s**2).sum()) / len(tokens), np.finfo(np.float64).tiny)
    counts = np.bincount(classes)
    average = np.eye(count)[:, classes] / counts[:, None]  # [K, N]: from the examples to their classes' means
    # Without its only example nothing is known of a class, so such examples have no say.
    judges = counts[classes] > 1
    if not judges.any():
        judges[:] = True
    found = []
    for shrinkage in SHRINKAGES * unit:
        kept = s**2 / (s**2 + shrinkage)
        leverage = 1 / len(tokens) + (u**2 * kept).sum(1)  # H_ii
        fitted = mean + (u * kept) @ projected  # H targets
        residuals = (targets - fitted) / (1 - leverage).clip(1e-9)[:, None]
        left_out = targets - residuals
        # What the head that has not seen an example gives for the mean of each class without it, and of its own.
        hat = 1 / len(tokens) + ((average @ u) * kept) @ u.T  # [K, N], averaged over each class
        means = average @ fitted  # [K, K]
        own = means[classes] - hat[classes, range(len(tokens)), None] * residuals  # [N, K], the example included
        others = (own - left_out) / (counts[classes] - 1).clip(1)[:, None]
        left_out -= means.mean(0) - hat.mean(0)[:, None] * residuals + others / count
        losses = [_loss(left_out[judges] / t, classes[judges]) for t in TEMPERATURES]
        best = int(np.argmin(losses))
        found.append((losses[best], shrinkage, TEMPERATURES[best], left_out))
    _, shrinkage, temperature, left_out = min(found, key=lambda one: one[0])
    weight = (vt.T * (s / (s**2 + shrinkage))) @ projected / temperature  # [D, K]
    bias = -(average @ tokens).mean(0) @ weight
    return Ridge(weight.T, bias, float(shrinkage), float(temperature), np.exp(_log_softmax(left_out / temperature)))


def _loss(logits: Floats, classes: NDArray[np.intp]) -> float:
    """Mean cross-entropy, in nats, beside one more example that is like all classes: none is ever quite sure."""
    scores = _log_softmax(logits)
    picked = scores[np.arange(len(classes)), classes]
    return float(-(picked.sum() + scores.mean()) / (len(classes) + 1))


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
