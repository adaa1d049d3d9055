"""Faithfulness of a map by deletion and insertion (Petsiuk et al., 2018, https://arxiv.org/abs/1806.07421).

Patches are replaced by a baseline in the order of the map, most important first. If the map is faithful, the class's
probability falls quickly (deletion), and rises quickly when patches return in the same order to an empty picture
(insertion). An area means little by itself, so the same is done in random orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vit_demo.defaults import BASELINES, NUM_RANDOM_ORDERS, NUM_STEPS
from vit_demo.errors import InputError
from vit_demo.methods.subsets import Progress, sequence_patches, sequences_per_batch
from vit_demo.methods.targets import class_scores
from vit_demo.trace import PassOptions, TracedViT

Measured = Literal["probability", "logit", "difference", "function"]


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """Deletion and insertion curves of one map and of random orders.

    Attributes:
        measured: ``"probability"`` or ``"logit"`` of the class, ``"difference"`` of two, or ``"function"`` of logits.
        fractions: The share of patches replaced, or returned, at each step: from 0 to 1, ``[steps + 1]``.
        deletion: What was measured, after so many patches were replaced, float32 ``[steps + 1]``; from the picture's
            own to the empty picture's.
        insertion: The same after so many were returned, ``[steps + 1]``; from the empty picture's to the picture's.
        random_deletion: The same in random orders, ``[seeds, steps + 1]``.
        random_insertion: As ``random_deletion``.
    """

    measured: Measured
    fractions: NDArray[np.float64]
    deletion: NDArray[np.float32]
    insertion: NDArray[np.float32]
    random_deletion: NDArray[np.float32]
    random_insertion: NDArray[np.float32]

    @classmethod
    def mean(cls, results: Iterable[Faithfulness]) -> Faithfulness:
        """The mean curves of several maps; ``InputError`` unless they share measure, steps and random orders."""
        curves = list(results)
        if len({(one.measured, one.fractions.tobytes(), one.random_deletion.shape) for one in curves}) != 1:
            raise InputError("Only curves of the same measure (see measured), steps and seeds have a mean: sort them.")
        names = [one.name for one in fields(cls)[1:]]
        return cls(curves[0].measured, *(np.mean([getattr(one, name) for one in curves], 0) for name in names))

    @property
    def deletion_area(self) -> float:
        """Area under the deletion curve, in [0, 1] for a probability; lower is better."""
        return self._area(self.deletion)

    @property
    def insertion_area(self) -> float:
        """Area under the insertion curve, in [0, 1] for a probability; higher is better."""
        return self._area(self.insertion)

    @property
    def random_deletion_area(self) -> float:
        """Mean area under the deletion curves of the random orders; NaN without any."""
        return self._mean_area(self.random_deletion)

    @property
    def random_insertion_area(self) -> float:
        """Mean area under the insertion curves of the random orders; NaN without any."""
        return self._mean_area(self.random_insertion)

    def _area(self, curve: NDArray[np.float32]) -> float:
        return float(np.trapezoid(curve, self.fractions))

    def _mean_area(self, curves: NDArray[np.float32]) -> float:
        return self._area(curves.mean(0)) if len(curves) else float("nan")


def faithfulness(
    model: TracedViT,
    images: Tensor,
    target: int | Callable[[Tensor], Tensor],
    values: Tensor | int,
    baseline: Tensor,
    *,
    against: int | None = None,
    by_logit: bool = False,
    steps: int = NUM_STEPS,
    seeds: int = NUM_RANDOM_ORDERS,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> Faithfulness:
    """Deletion and insertion curves of a map, ``values`` ``[rows, cols]``, and of ``seeds`` random orders.

    Equal values go row by row. A number in place of the map tests that random order by itself, counted from 0. In at
    most ``steps`` steps, at least 1, patches are replaced by ``baseline``, normalised, ``[1, C, height, width]`` or
    what broadcasts to it. With ``against`` the difference of both logits is measured in place of a probability, and
    with ``by_logit`` the logit. Other parameters as in ``vit_demo.methods``.
    """
    if steps < 1 or seeds < 0:
        raise InputError(f"Choose at least 1 step and 0 random orders, not {steps} and {seeds}.")
    grid, patches = sequence_patches(model, images, **options)
    n = len(patches)
    counts = torch.linspace(0, n, min(steps, n) + 1, dtype=torch.float32).round().long()
    if isinstance(values, int):
        first = random_orders(n, values + 1)[values]
    else:
        first = values.flatten().to(patches.device)[patches].argsort(descending=True, stable=True)
    orders = [order.to(patches.device) for order in (first, *random_orders(n, seeds))]
    rank = torch.stack(orders).argsort(1)  # [1 + seeds, n]: the position of each patch in its order
    replaced = rank[:, None] < counts.to(rank.device)[None, :, None]  # [1 + seeds, steps + 1, n]
    present = torch.stack([~replaced, replaced]).flatten(0, 2)  # deletion, then insertion
    whole = torch.ones(len(present), grid[0] * grid[1], dtype=torch.bool, device=images.device)
    whole[:, patches] = present
    shown = whole.unflatten(1, grid)
    baseline, p = baseline.to(images.device).to(images.dtype), images.shape[2] // grid[0]
    results: list[Tensor] = []
    for part in shown.split(sequences_per_batch(shown[0].numel())):
        pixels = part.repeat_interleave(p, 1).repeat_interleave(p, 2)[:, None]  # [m, 1, height, width]
        with torch.no_grad():
            logits = model(torch.where(pixels, images, baseline), **options).float()
        measures_logits = by_logit or against is not None or callable(target)
        values = logits if measures_logits else model.to_scores(logits)
        results.append(class_scores(values, target, against))
        if progress is not None:
            progress(sum(map(len, results)), len(shown))
    curves = torch.cat(results).cpu().numpy().reshape(2, 1 + seeds, len(counts))
    measured: Measured = "function" if callable(target) else "probability"
    if not callable(target) and (against is not None or by_logit or model.scores == "none"):
        measured = "logit" if against is None else "difference"
    return Faithfulness(measured, counts.numpy() / n, curves[0, 0], curves[1, 0], curves[0, 1:], curves[1, 1:])


def random_orders(count: int, seeds: int) -> list[Tensor]:
    """The random orders that a map is compared with: ``seeds`` permutations of ``count`` patches, always the same."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randperm(count, generator=generator) for _ in range(seeds)]


def baseline_image(name: str, images: Tensor, patch_size: int, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """The normalised picture, or colour, that replaces removed patches of ``[B, C, height, width]``; it broadcasts.

    ``"mean"`` is the colour that normalization maps to 0, which is grey for a mean of 0.5; ``"blur"`` the picture
    without details smaller than four patches; ``"black"`` black. Any other name is an ``InputError``.
    """
    if name == "mean":
        return torch.zeros(1, 1, 1, 1, dtype=images.dtype, device=images.device)
    if name == "blur":
        return blur(images, 4 * patch_size)
    if name == "black":
        black = [-m / s for m, s in zip(mean, std, strict=True)]
        return torch.tensor(black, dtype=images.dtype, device=images.device).reshape(1, -1, 1, 1)
    raise InputError(f"There is no baseline {name!r}: choose one of {', '.join(BASELINES)}.")


def blur(images: Tensor, size: int) -> Tensor:
    """The picture without detail smaller than ``size`` pixels, in the same shape."""
    height, width = images.shape[2:]
    coarse = F.adaptive_avg_pool2d(images, (max(1, height // size), max(1, width // size)))
    return F.interpolate(coarse, size=(height, width), mode="bilinear", align_corners=False)
