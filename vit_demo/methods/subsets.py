"""Predictions for an image when only some of its patches enter the sequence."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vit_demo.methods.chunking import chunk_size
from vit_demo.methods.targets import class_scores
from vit_demo.trace import TracedViT

Progress = Callable[[int, int], None]
"""Progress callback: called with the number of passes done and their total."""

BATCH_TOKENS = 8192
"""Tokens of one batch: enough to keep the matrix products busy, few enough for a small machine's memory."""


def sequence_patches(
    model: TracedViT, images: Tensor, patch_size: int | None, kept_patches: Tensor | None
) -> tuple[tuple[int, int], Tensor]:
    """The grid of one image, and those of its patches ``[K]`` that enter the sequence."""
    p = model.patch_size if patch_size is None else patch_size
    grid = (images.shape[2] // p, images.shape[3] // p)
    return grid, torch.arange(grid[0] * grid[1], device=images.device) if kept_patches is None else kept_patches[0]


def sequences_per_batch(tokens: int) -> int:
    """How many sequences of a length fit into one batch."""
    return chunk_size(BATCH_TOKENS, tokens)


@torch.inference_mode()
def log_probabilities(
    model: TracedViT,
    images: Tensor,
    target: int,
    subsets: Tensor,
    *,
    against: int | None = None,
    patch_size: int | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """The logarithm of a class's probability for each of many subsets of one image's patches, or of a ratio of two.

    Patches outside a subset are *dropped* from the sequence: nothing replaces them, and the pass gets cheaper.

    Args:
        model: In eval mode.
        images: ``[1, C, height, width]``, normalised.
        target: The class.
        subsets: ``[M, K]`` int64: the patches that stay, counted row by row.
        against: A class by whose probability that of the class is divided.
        patch_size: As in ``TracedViT.forward``.
        progress: Called after every batch.

    Returns:
        ``[M]`` float32.
    """
    logits = subset_logits(model, images, subsets, patch_size=patch_size, progress=progress)
    return class_scores(logits.log_softmax(1), target, against)


@torch.inference_mode()
def subset_logits(
    model: TracedViT,
    images: Tensor,
    subsets: Tensor,
    *,
    patch_size: int | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """The logits ``[M, classes]``, float32, of many subsets of one image's patches; see ``log_probabilities``."""
    results: list[Tensor] = []
    for part in subsets.split(sequences_per_batch(subsets.shape[1] + model.config.num_prefix_tokens)):
        pictures = images.expand(len(part), -1, -1, -1)
        results.append(model(pictures, patch_size=patch_size, kept_patches=part).float())
        if progress is not None:
            progress(sum(map(len, results)), len(subsets))
    return torch.cat(results)
