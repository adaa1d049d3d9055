"""Occlusion (Zeiler and Fergus, 2014, https://arxiv.org/abs/1311.2901), by leaving patches out of the sequence."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.attention import lay_out
from vit_demo.methods.subsets import Progress, log_probabilities, patches_of
from vit_demo.model import ViT


def occlusion(
    model: ViT,
    images: Tensor,
    target: int,
    *,
    window: int = 1,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """What the class loses when a patch, or a window around it, is dropped.

    ``log p(class | all) - log p(class | all but the window)``; nothing grey or black stands in for what is gone, which
    would be an odd picture of its own.

    Args:
        model: In eval mode.
        images: ``[1, C, height, width]``, normalised.
        target: The class.
        window: Side of the window centred on each patch, in patches, odd; cut off at the edges.
        patch_size: As in ``ViT.forward``.
        keep: ``[1, K]``: only these are in the sequence to begin with.
        progress: Told after every batch.

    Returns:
        ``[1, rows, cols]`` float32; below 0 where the class gains. 0 where a patch was not in the sequence.

    Raises:
        InputError: If the window is even, or so large that nothing would be left.
    """
    if window < 1 or window % 2 == 0:
        raise InputError(f"A window of {window} patches has no middle: choose an odd number.")
    grid, patches = patches_of(model, images, patch_size, keep)
    place = torch.stack([patches // grid[1], patches % grid[1]])  # [2, K]
    distance = (place[:, :, None] - place[:, None]).abs().amax(0)  # [K, K]
    stays = distance > window // 2  # row i is the window centred on patch i
    sizes = stays.sum(1)
    if not sizes.all():
        raise InputError(f"A window of {window} patches leaves nothing of a grid of {grid[0]} x {grid[1]}.")
    whole = log_probabilities(model, images, target, patches[None], patch_size=patch_size)
    lost = torch.zeros(len(patches), device=images.device)
    done = 0

    def tell(count: int, _: int) -> None:
        if progress is not None:
            progress(done + count, len(patches))

    for size in sizes.unique():  # windows at the edges are smaller, and a batch holds sequences of one length
        same = (sizes == size).nonzero()[:, 0]
        subsets = patches.expand(len(same), -1)[stays[same]].unflatten(0, (len(same), -1))
        lost[same] = whole - log_probabilities(model, images, target, subsets, patch_size=patch_size, progress=tell)
        done += len(same)
    return lay_out(lost[None], grid, keep)
