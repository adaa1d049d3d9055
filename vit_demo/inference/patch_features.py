"""What the tokens of a result's patches show: similarity, principal components, segments, norms, classes.

A result keeps q, k and v but no tokens, so they come from one more forward pass, and are cached apart from results. The
functions whose first argument is a result are also methods of ``Exploration``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vit_demo import features
from vit_demo.checks import whole_number
from vit_demo.errors import CheckpointError, InputError
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.result import Result, kept_patches, ranking
from vit_demo.inference.sequence import check_block, class_index, patch_index
from vit_demo.scores import to_scores
from vit_demo.weights.hub.preprocessing import PREPARED

if TYPE_CHECKING:
    from numpy.typing import NDArray


TOKEN_BYTES = 64 << 20  # limit of the cached tokens; all blocks of DINOv2 ViT-S/14 at 1,369 patches take 27 MB

_cache: ByteCache[features.PatchTokens] = ByteCache(TOKEN_BYTES, lambda tokens: tokens.num_bytes)


def patch_tokens(ex: Result) -> features.PatchTokens:
    """The tokens of every depth, and what else one pass shows of each patch; ``CheckpointError`` unless finite."""
    pixels = hashlib.sha256(ex.pixels.detach().numpy().tobytes()).digest()
    q = ex.trace.q[0]  # of the device and the precision of the pass, which may change between two results
    key = (ex.preset, ex.patch_size, ex.dropped, ex.intervention, tuple(ex.pixels.shape), pixels, q.device, q.dtype)
    found = _cache.get(key)
    if found is None:
        found = features.PatchTokens(*ex.run(features.patch_tokens))
        if not torch.isfinite(found.tokens).all():
            raise CheckpointError("A token of this model is not a number, so it cannot be shown: choose another model.")
        _cache.put(key, found)
    return found


def tokens(ex: Result, block: int = -1, *, norm: bool = True, prefix: bool = False) -> NDArray[np.float32]:
    """The tokens of the patches after a block, row by row, without dropped patches.

    Args:
        ex: The result.
        block: From 0; negative from the end.
        norm: Whether the network's final norm is applied, as where the head reads them. Without it they are what timm's
            ``forward_intermediates(norm=False)`` gives.
        prefix: Whether the tokens before the patches (class token, registers) come first.

    Returns:
        float32 ``[N, D]``.

    Raises:
        InputError: If there is no such block.
    """
    depth = depth_after(ex, block)
    if norm and not prefix:
        return patch_tokens(ex).tokens[depth].numpy()
    found: NDArray[np.float32] = ex.run(features.block_tokens, depth, norm=norm)[0].numpy()
    return found if prefix else found[ex.trace.num_prefix_tokens :]


def depth_after(ex: Result, block: int) -> int:
    """The index, in all depths, of the tokens after a block."""
    return 1 + check_block(ex.trace.num_blocks, block) % ex.trace.num_blocks


def similarity(ex: Result, query: tuple[int, int], block: int = -1, other: Result | None = None) -> NDArray[np.float32]:
    """Cosine similarity of one patch's token to that of every patch: float32 ``[rows, cols]``, from -1 to 1.

    The tokens are those after a block and the final norm; NaN at a dropped patch, as in the next three.

    Args:
        ex: The result.
        query: (row, col) of the patch.
        block: From 0; negative from the end.
        other: Compare with the patches of this result of the same model, and return its grid.

    Raises:
        InputError: If there is no such patch or block, or the other model is another.
    """
    target = same_model(ex, other) if other is not None else ex
    token = tokens(ex, block)[patch_index(ex, query)]
    return _to_grid(target, features.similarity(token, tokens(target, block)))


def pca(
    ex: Result,
    block: int = -1,
    components: int = 3,
    other: Result | None = None,
    remove_background: bool = False,
) -> NDArray[np.float32]:
    """The first principal components of the patches' tokens: float32 ``[rows, cols, components]``.

    Args:
        ex: The result.
        block: As in ``similarity``.
        components: How many; highest variance first; in each, the value of largest magnitude is positive.
        other: Fit the components to this result's patches as well, so that both can be compared.
        remove_background: Fit again, to the first 64 components of the patches on one side of zero of the first;
            NaN elsewhere. See ``features.foreground``.

    Raises:
        InputError: If there is no such block, a token has fewer numbers, or the other model is another.
    """
    both = [ex] if other is None else [ex, same_model(ex, other)]
    fitted = np.concatenate([tokens(each, block) for each in both])
    if not 1 <= whole_number(components, "The number of components") <= fitted.shape[1]:
        raise InputError(f"The number of components must be from 1 to {fitted.shape[1]}, the width of a token.")
    scores = features.pca(fitted, max(components, features.MAIN_COMPONENTS) if remove_background else components)
    if remove_background:
        edges = np.concatenate([edge_patches(each) for each in both])
        scores = features.pca(scores, components, features.foreground(scores[:, 0], edges))
    return _to_grid(ex, scores[: len(_present(ex))])


def kmeans(ex: Result, k: int, block: int = -1, seed: int = 0) -> NDArray[np.int64]:
    """Segments of similar tokens by k-means: int64 ``[rows, cols]``, from 0 to k - 1; -1 at a dropped patch.

    Args:
        ex: The result.
        k: How many segments, 2 to 12 and at most one a patch.
        block: As in ``similarity``.
        seed: That of the random choice of the patches from which the segments grow.

    Raises:
        InputError: If there is no such block, or k is out of range.
    """
    most, seed = min(features.MAX_SEGMENTS, len(_present(ex))), whole_number(seed, "The seed", 0)
    if most < features.MIN_SEGMENTS:
        raise InputError("Segments need at least {0} patches, and only {1} is left.", features.MIN_SEGMENTS, most)
    if not features.MIN_SEGMENTS <= whole_number(k, "The number of segments") <= most:
        raise InputError(f"The number of segments must be from {features.MIN_SEGMENTS} to {most} here.")
    points = features.reduce_tokens(tokens(ex, block)).main
    labels = features.kmeans(points, features.choose_seeds(points, seed=seed)[:k])
    return np.nan_to_num(_to_grid(ex, labels.astype(np.float32)), nan=-1).astype(np.int64)


def norms(ex: Result, block: int = -1) -> NDArray[np.float32]:
    """The length of each patch's token before the final norm: float32 ``[rows, cols]``; see ``norm_outliers``.

    Args:
        ex: The result.
        block: As in ``similarity``.

    Raises:
        InputError: If there is no such block.
    """
    return _to_grid(ex, patch_tokens(ex).norms[depth_after(ex, block)].numpy())


def logit_lens(ex: Result, patches: bool = False) -> list:
    """The prediction before the first block and after each (logit lens), or that of each patch.

    Returns:
        For each depth all (label, probability) pairs, highest first. With ``patches``, for each depth, row and
        column the five highest: what the head makes of that patch's token alone; none for a dropped patch. A head
        that reads the class token was not trained on patches, so read those as a tendency.

    Raises:
        LabelError: If the model has no classes.
    """
    class_index(ex)
    if patches:
        return _logit_lens_of_patches(ex)
    logits = ex.run(features.logit_lens)[0]  # [blocks + 1, K]
    return [ranking(ex.labels, row, len(ex.labels)) for row in to_scores(logits, ex.preset.scores).numpy()]


def _logit_lens_of_patches(ex: Result) -> list[list[list[list[tuple[str, float]]]]]:
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


def edge_patches(ex: Result) -> NDArray[np.bool_]:
    """Which patches of the sequence lie on the edge of the picture, ``[N]``."""
    rows, cols = ex.grid
    row, col = np.divmod(_present(ex), cols)
    return (row == 0) | (row == rows - 1) | (col == 0) | (col == cols - 1)


def _present(ex: Result) -> NDArray[np.int64]:
    """The patches of the sequence ``[N]``, counted row by row."""
    kept = kept_patches(ex)
    return np.arange(ex.grid[0] * ex.grid[1]) if kept is None else kept[0].numpy()


def _to_grid(ex: Result, values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Values ``[N, ...]`` of the patches in the sequence as ``[rows, cols, ...]``; NaN where one was dropped."""
    whole = np.full((ex.grid[0] * ex.grid[1], *values.shape[1:]), np.nan, np.float32)
    whole[_present(ex)] = values
    return whole.reshape(*ex.grid, *values.shape[1:])


def same_model(ex: Result, other: Result) -> Result:
    """The other result; ``InputError`` if it is none, or of another model."""
    if not hasattr(other, "preset"):
        raise InputError("The other result must be an Exploration, not {0}.", type(other).__name__)
    if _model_of(other) != _model_of(ex):
        raise InputError(f"Tokens of {ex.preset.name} and {other.preset.name} cannot be compared: use one model.")
    return other


def _model_of(ex: Result) -> Any:
    """What two results of one model share: of a network in memory its weights, and how pictures become its input."""
    if not ex.preset.is_in_memory:
        return ex.preset
    return ex.preset.revision.partition(".")[0], *(getattr(ex.preset, name) for name in PREPARED)
