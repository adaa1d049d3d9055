"""Can a map be believed? Deletion and insertion (Petsiuk et al., 2018, https://arxiv.org/abs/1806.07421).

Patches are replaced in the order of the map, most important first. If the map is right the class's probability falls at
once (deletion), and comes back at once when patches return in the same order to an empty picture (insertion). An area
means nothing alone, so the same is done in random orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.subsets import Progress, batch_of, patches_of
from vit_demo.model import ViT


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """The curves of one map, and those of chance.

    Attributes:
        fractions: The share of patches replaced, or returned, at each step: from 0 to 1, ``[steps + 1]``.
        deletion: Probability of the class after so many patches were replaced, float32 ``[steps + 1]``; from the
            picture's own to the empty picture's.
        insertion: Probability after so many were returned, ``[steps + 1]``; from the empty picture's to the picture's.
        random_deletion: The same in random orders, ``[seeds, steps + 1]``.
        random_insertion: As ``random_deletion``.
    """

    fractions: NDArray[np.float64]
    deletion: NDArray[np.float32]
    insertion: NDArray[np.float32]
    random_deletion: NDArray[np.float32]
    random_insertion: NDArray[np.float32]

    @property
    def deletion_area(self) -> float:
        """Under the deletion curve, in [0, 1]; lower is better."""
        return self._area(self.deletion)

    @property
    def insertion_area(self) -> float:
        """Under the insertion curve, in [0, 1]; higher is better."""
        return self._area(self.insertion)

    @property
    def random_deletion_area(self) -> float:
        """What chance reaches, the mean over the seeds; NaN without any."""
        return self._mean_area(self.random_deletion)

    @property
    def random_insertion_area(self) -> float:
        """What chance reaches, the mean over the seeds; NaN without any."""
        return self._mean_area(self.random_insertion)

    @property
    def orders_beaten(self) -> tuple[int, int]:
        """How many of the random orders the map's did better than, in deletion and in insertion."""
        deletion, insertion = self.deletion_area, self.insertion_area
        return (
            sum(deletion < self._area(curve) for curve in self.random_deletion),
            sum(insertion > self._area(curve) for curve in self.random_insertion),
        )

    def _area(self, curve: NDArray[np.float32]) -> float:
        widths, heights = np.diff(self.fractions), (curve[1:] + curve[:-1]) / 2
        return float((widths * heights).sum())

    def _mean_area(self, curves: NDArray[np.float32]) -> float:
        return self._area(curves.mean(0)) if len(curves) else float("nan")


def faithfulness(
    model: ViT,
    images: Tensor,
    target: int,
    values: Tensor,
    baseline: Tensor,
    *,
    steps: int = 14,
    seeds: int = 5,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    progress: Progress | None = None,
) -> Faithfulness:
    """Deletion and insertion curves of a map and of random orders.

    Args:
        model: In eval mode.
        images: ``[1, C, height, width]``, normalised.
        target: The class whose probability is watched.
        values: The map ``[rows, cols]``; equal values go row by row.
        baseline: What stands in for a patch, normalised, ``[1, C, height, width]`` or anything that broadcasts to it.
        steps: How many times patches are replaced; at most once each.
        seeds: How many random orders; 0 for none.
        patch_size: As in ``ViT.forward``.
        keep: ``[1, K]``: only these are in the sequence, and only these are replaced.
        progress: Told after every batch.

    Raises:
        InputError: If there is less than one step, or less than no random order.
    """
    if steps < 1 or seeds < 0:
        raise InputError(f"{steps} steps and {seeds} random orders cannot be: ask for one step and no order at least.")
    grid, patches = patches_of(model, images, patch_size, keep)
    n = len(patches)
    counts = torch.linspace(0, n, min(steps, n) + 1).round().long()
    generator = torch.Generator().manual_seed(0)
    orders = [values.flatten().to(patches.device)[patches].argsort(descending=True, stable=True)]
    orders += [torch.randperm(n, generator=generator).to(patches.device) for _ in range(seeds)]
    place = torch.stack(orders).argsort(1)  # [1 + seeds, n]: how soon each patch is replaced
    replaced = place[:, None] < counts.to(place.device)[None, :, None]  # [1 + seeds, steps + 1, n]
    shown = torch.stack([~replaced, replaced]).flatten(0, 2)  # deletion, then insertion
    whole = torch.ones(len(shown), grid[0] * grid[1], dtype=torch.bool, device=images.device)
    whole[:, patches] = shown
    found = _probabilities(model, images, target, whole.unflatten(1, grid), baseline, patch_size, keep, progress)
    curves = found.cpu().numpy().reshape(2, 1 + seeds, len(counts))
    return Faithfulness(counts.numpy() / n, curves[0, 0], curves[1, 0], curves[0, 1:], curves[1, 1:])


@torch.inference_mode()
def _probabilities(
    model: ViT,
    images: Tensor,
    target: int,
    shown: Tensor,
    baseline: Tensor,
    patch_size: int | None,
    keep: Tensor | None,
    progress: Progress | None,
) -> Tensor:
    """The class's probability ``[M]`` where ``shown`` ``[M, rows, cols]`` is the picture and the rest the baseline."""
    p = patch_size or model.patch_size
    baseline = baseline.to(images.device)
    found: list[Tensor] = []
    for part in shown.split(batch_of(shown[0].numel())):
        pixels = part.repeat_interleave(p, 1).repeat_interleave(p, 2)[:, None]  # [m, 1, height, width]
        mixed = torch.where(pixels, images, baseline)
        kept = None if keep is None else keep.expand(len(part), -1)
        logits = model(mixed, patch_size=patch_size, keep=kept)
        found.append(logits.float().softmax(1)[:, target])
        if progress is not None:
            progress(sum(map(len, found)), len(shown))
    return torch.cat(found)
