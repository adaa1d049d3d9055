"""Predictions for an image when only some of its patches enter the sequence."""

from collections.abc import Callable
from typing import Any, Unpack

import torch
from torch import Tensor

from vit_demo.methods.chunking import chunk_size
from vit_demo.methods.targets import class_scores
from vit_demo.trace import PassOptions, TracedViT

Progress = Callable[[int, int], None]  # called with the number of passes done and their total
BATCH_TOKENS = 8192  # tokens of one batch: busy matrix products in a small machine's memory


def sequence_patches(
    model: TracedViT, images: Tensor, patch_size: int | None = None, kept_patches: Tensor | None = None
) -> tuple[tuple[int, int], Tensor]:
    """The grid of one image, and those of its patches ``[K]`` that enter the sequence."""
    p = model.patch_size if patch_size is None else patch_size
    grid = (images.shape[2] // p, images.shape[3] // p)
    return grid, torch.arange(grid[0] * grid[1], device=images.device) if kept_patches is None else kept_patches[0]


def sequences_per_batch(tokens: int) -> int:
    """How many sequences of a length fit into one batch."""
    return chunk_size(BATCH_TOKENS, tokens)


def log_probabilities(
    model: TracedViT,
    images: Tensor,
    target: int | Callable[[Tensor], Tensor],
    present: Tensor,
    *,
    against: int | None = None,
    **options: Any,
) -> Tensor:
    """The logarithm ``[M]`` of a class's probability where only some patches are present, or of a ratio of two.

    With ``against`` the probability of ``target`` is divided by that of the other class. Where there are no
    probabilities, it is the logit, or the difference of two. A function gets the logits themselves. Other parameters
    as in ``subset_logits``.
    """
    logits = subset_logits(model, images, present, **options)
    return class_scores(logits if callable(target) else model.to_scores(logits, log=True), target, against)


@torch.no_grad()
def subset_logits(
    model: TracedViT,
    images: Tensor,
    present: Tensor,
    *,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> Tensor:
    """The logits ``[M, classes]`` float32 of one image for M subsets of its patches.

    ``present``, bool ``[M, K]``, says which patches are in each, at least one. The others are *dropped*:
    nothing replaces them, and the pass gets cheaper. Other parameters as in ``vit_demo.methods``.
    """
    _, patches = sequence_patches(model, images, **options)
    batches: list[Tensor] = []
    results: list[Tensor] = []
    sizes = present.sum(1).cpu()
    for size in sizes.unique().tolist():  # a batch holds sequences of one length
        same = (sizes == size).nonzero()[:, 0]
        for part in same.split(sequences_per_batch(size + model.config.num_prefix_tokens)):
            kept = patches.expand(len(part), -1)[present[part]].unflatten(0, (len(part), -1))
            pictures = images.expand(len(part), -1, -1, -1)
            results.append(model(pictures, **options | {"kept_patches": kept}).float())
            batches.append(part)
            if progress is not None:
                progress(sum(map(len, batches)), len(present))
    return torch.cat(results)[torch.cat(batches).argsort()]
