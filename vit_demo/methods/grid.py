"""From one value a token to one value a patch, on the grid."""

from torch import Tensor

from vit_demo.trace import Recording


def to_grid(values: Tensor, trace: Recording) -> Tensor:
    """Drops the prefix tokens of ``[..., N]`` and arranges the rest as ``[..., rows, cols]``.

    A dropped patch has no token: it neither attends nor is attended to, so its true value is 0.
    """
    return scatter_to_grid(values[..., trace.num_prefix_tokens :], trace.grid, trace.kept_patches)


def scatter_to_grid(values: Tensor, grid: tuple[int, int], kept_patches: Tensor | None) -> Tensor:
    """Puts the value of each patch in the sequence in its place on the grid.

    Args:
        values: ``[..., K]``, with the batch first where ``kept_patches`` has more than one row.
        grid: Rows and columns.
        kept_patches: ``[B, K]``: the patches of the sequence; None for all, row by row.

    Returns:
        ``[..., rows, cols]``, 0 where a patch is not in the sequence.
    """
    if kept_patches is None:
        return values.unflatten(-1, grid)
    if len(kept_patches) == 1:
        index = kept_patches[0].expand(values.shape)
    else:
        index = kept_patches.reshape(len(kept_patches), *[1] * (values.ndim - 2), -1).expand(values.shape)
    full = values.new_zeros(*values.shape[:-1], grid[0] * grid[1])
    return full.scatter(-1, index, values).unflatten(-1, grid)
