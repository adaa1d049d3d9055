"""What the tokens of a result's patches show: similarity, principal components, segments, norms, classes.

A result keeps q, k and v but no tokens, so they come from one more forward pass, and are cached apart from results.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import torch

from vit_demo import features
from vit_demo.errors import CheckpointError, InputError
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.limits import TOKEN_BYTES
from vit_demo.inference.sequence import check_block, kept_patches, patch_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vit_demo.inference.exploration import Exploration

_cache: ByteCache[features.PatchTokens] = ByteCache(TOKEN_BYTES, lambda tokens: tokens.num_bytes)


def patch_tokens(ex: Exploration) -> features.PatchTokens:
    """The tokens of every depth, and what else one pass shows of each patch.

    Raises:
        CheckpointError: If a token is not finite.
    """
    pixels = hashlib.sha256(ex.pixels.numpy().tobytes()).digest()
    key = (ex.preset, ex.patch_size, ex.dropped, tuple(ex.pixels.shape), pixels)
    found = _cache.get(key)
    if found is None:
        found = features.PatchTokens(*ex.run(features.patch_tokens))
        if not torch.isfinite(found.tokens).all():
            raise CheckpointError("A token of this model is not a number, so it cannot be shown: choose another model.")
        _cache.put(key, found)
    return found


def block_tokens(ex: Exploration, block: int) -> NDArray[np.float32]:
    """The tokens ``[N, D]`` after a block, of the patches in the sequence."""
    return patch_tokens(ex).tokens[depth_after(ex, block)].numpy()


def depth_after(ex: Exploration, block: int) -> int:
    """The index, in all depths, of the tokens after a block.

    Raises:
        InputError: If there is no such block.
    """
    check_block(ex, block)
    return 1 + block % ex.trace.num_blocks


def similarity(ex: Exploration, query: tuple[int, int], block: int, other: Exploration | None) -> NDArray[np.float32]:
    """See ``Exploration.similarity``."""
    target = _same_model(ex, other) if other is not None else ex
    token = block_tokens(ex, block)[patch_index(ex, query)]
    return _to_grid(target, features.similarity(token, block_tokens(target, block)))


def pca(
    ex: Exploration, block: int, components: int, other: Exploration | None, remove_background: bool
) -> NDArray[np.float32]:
    """See ``Exploration.pca``."""
    both = [ex] if other is None else [ex, _same_model(ex, other)]
    tokens = np.concatenate([block_tokens(each, block) for each in both])
    if not 1 <= components <= tokens.shape[1]:
        raise InputError(f"The number of components must be from 1 to {tokens.shape[1]}, the width of a token.")
    scores = features.pca(tokens, max(components, features.MAIN_COMPONENTS) if remove_background else components)
    if remove_background:
        edges = np.concatenate([edge_patches(each) for each in both])
        scores = features.pca(scores, components, features.foreground(scores[:, 0], edges))
    return _to_grid(ex, scores[: len(_present(ex))])


def kmeans(ex: Exploration, k: int, block: int, seed: int) -> NDArray[np.int64]:
    """See ``Exploration.kmeans``."""
    most = min(features.MAX_SEGMENTS, len(_present(ex)))
    if not features.MIN_SEGMENTS <= k <= most:
        raise InputError(f"The number of segments must be from {features.MIN_SEGMENTS} to {most} here.")
    points = features.reduce_tokens(block_tokens(ex, block)).main
    labels = features.kmeans(points, features.choose_seeds(points, seed=seed)[:k])
    return np.nan_to_num(_to_grid(ex, labels.astype(np.float32)), nan=-1).astype(np.int64)


def norms(ex: Exploration, block: int) -> NDArray[np.float32]:
    """See ``Exploration.norms``."""
    return _to_grid(ex, patch_tokens(ex).norms[depth_after(ex, block)].numpy())


def logit_lens(ex: Exploration) -> list[list[list[list[tuple[str, float]]]]]:
    """For each depth, row and column the most likely (label, probability) pairs; see ``Exploration.logit_lens``."""
    found, (rows, cols) = patch_tokens(ex), ex.grid
    token_of = {int(patch): token for token, patch in enumerate(_present(ex))}
    depths = []
    for classes, probabilities in zip(found.classes.tolist(), found.probabilities.tolist(), strict=True):
        pairs = [
            [(ex.labels[index], probability) for index, probability in zip(*of_patch, strict=True)]
            for of_patch in zip(classes, probabilities, strict=True)
        ]
        cells = [pairs[token_of[patch]] if patch in token_of else [] for patch in range(rows * cols)]
        depths.append([cells[row * cols : (row + 1) * cols] for row in range(rows)])
    return depths


def edge_patches(ex: Exploration) -> NDArray[np.bool_]:
    """Which patches of the sequence lie on the edge of the picture, ``[N]``."""
    rows, cols = ex.grid
    row, col = np.divmod(_present(ex), cols)
    return (row == 0) | (row == rows - 1) | (col == 0) | (col == cols - 1)


def _present(ex: Exploration) -> NDArray[np.int64]:
    """The patches of the sequence ``[N]``, counted row by row."""
    kept = kept_patches(ex)
    return np.arange(ex.grid[0] * ex.grid[1]) if kept is None else kept[0].numpy()


def _to_grid(ex: Exploration, values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Values ``[N, ...]`` of the patches in the sequence as ``[rows, cols, ...]``; NaN where one was dropped."""
    whole = np.full((ex.grid[0] * ex.grid[1], *values.shape[1:]), np.nan, np.float32)
    whole[_present(ex)] = values
    return whole.reshape(*ex.grid, *values.shape[1:])


def _same_model(ex: Exploration, other: Exploration) -> Exploration:
    if other.preset != ex.preset:
        raise InputError(f"Tokens of {ex.preset.name} and {other.preset.name} cannot be compared: use one model.")
    return other
