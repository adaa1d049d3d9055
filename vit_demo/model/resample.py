"""Another patch size or grid from the same weights (FlexiViT, Beyer et al., 2022, https://arxiv.org/abs/2212.08013).

Everything here starts from the stored tensors, never from an earlier result, so no chain of sizes can add up errors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.model.memory import num_bytes

S = TypeVar("S", bound=Hashable)

SIZES_KEPT = 8
"""Sizes that a ``SizeCache`` remembers; the one that was least used lately makes room."""


def _resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Bicubic, antialiased resize of ``[B, C, h, w]`` in float32, the one that public ViTs are resampled with."""
    return F.interpolate(images.float(), size=size, mode="bicubic", antialias=True, align_corners=False)


@lru_cache(maxsize=16)
def _pi_matrix(old: int, new: int) -> Tensor:
    """The matrix ``[new * new, old * old]`` that turns a kernel for ``old`` pixels into one for ``new``.

    With B the matrix that resizes an old patch, the new kernel w' shall answer a resized patch as w answers the patch:
    ``(B x) . w' = x . w`` for all x, so ``B^T w' = w`` and w' = pinv(B^T) w.
    """
    with torch.inference_mode(False), torch.no_grad():
        basis = torch.eye(old * old, dtype=torch.float32).reshape(old * old, 1, old, old)
        resize_t = _resize(basis, (new, new)).reshape(old * old, new * new)  # B^T: [old^2, new^2]
        return torch.linalg.pinv(resize_t.double()).float()  # [new^2, old^2]


def resample_kernel(kernel: Tensor, patch_size: int) -> Tensor:
    """Pseudo-inverse resize (PI-resize) of a patch embedding.

    Args:
        kernel: ``[D, C, p, p]``, square.
        patch_size: The new side, in pixels.

    Returns:
        ``[D, C, patch_size, patch_size]`` of the same dtype; the kernel itself where the size is the same.
    """
    if kernel.shape[-1] == patch_size:
        return kernel
    matrix = _pi_matrix(kernel.shape[-1], patch_size).to(kernel.device)
    resampled = kernel.float().flatten(2) @ matrix.T  # [D, C, p^2] -> [D, C, new^2]
    return resampled.unflatten(2, (patch_size, patch_size)).to(kernel.dtype)


def interpolate_positions(positions: Tensor, grid: tuple[int, int], num_prefix: int) -> Tensor:
    """Learned positions on another grid, rectangular ones too.

    Args:
        positions: ``[1, num_prefix + g * g, D]``: the prefix's positions, then a square grid row by row.
        grid: The rows and columns wanted.
        num_prefix: Leading positions that belong to no patch and are kept as they are.

    Returns:
        ``[1, num_prefix + rows * cols, D]`` of the same dtype.
    """
    prefix, patches = positions[:, :num_prefix], positions[:, num_prefix:]
    side = int(patches.shape[1] ** 0.5)
    if grid == (side, side):
        return positions
    image = patches.unflatten(1, (side, side)).permute(0, 3, 1, 2)  # [1, g*g, D] -> [1, D, g, g]
    image = _resize(image, grid).to(positions.dtype)
    return torch.cat([prefix, image.flatten(2).transpose(1, 2)], dim=1)  # [1, num_prefix + rows*cols, D]


class SizeCache:
    """Remembers what was derived from one parameter, for its last few sizes, while that parameter is unchanged.

    With gradients on it remembers nothing, so that training always goes through the stored tensor, and forgets what it
    knew, because a fused optimiser changes that tensor without counting up its version.

    Threads may share it: what is remembered is never changed, only replaced, which needs no lock that a fork could
    inherit held. At worst two threads derive the same size. Copies and pickles start out empty, so that a network can
    be copied while others use it.
    """

    def __init__(self) -> None:
        self._kept: tuple[tuple, dict[Hashable, Tensor]] = ((), {})

    def __reduce__(self) -> tuple[type[SizeCache], tuple[()]]:
        return SizeCache, ()

    def get(self, parameter: Tensor, size: S, derive: Callable[[Tensor, S], Tensor]) -> Tensor:
        """``derive(parameter, size)``, computed once while the size is among the last ``SIZES_KEPT``.

        Args:
            parameter: The stored original.
            size: What to derive from it; hashable.
            derive: The resampling.
        """
        learning = parameter.requires_grad and torch.is_grad_enabled()
        if learning or parameter.is_inference():  # an inference tensor keeps no version
            self._kept = ((), {})
            return derive(parameter, size)
        stamp = (parameter.data_ptr(), parameter._version, parameter.device, parameter.dtype)
        derived = self._derived(stamp).get(size)
        if derived is None:
            # An inference tensor would be of no use to a later backward.
            with torch.inference_mode(False), torch.no_grad():
                derived = derive(parameter, size)
        others = {key: value for key, value in self._derived(stamp).items() if key != size}
        recent = dict(list(others.items())[1 - SIZES_KEPT :])
        self._kept = (stamp, {**recent, size: derived})  # the last used stands last
        return derived

    @property
    def tensors(self) -> list[Tensor]:
        """What is remembered now; the parameter itself where it has the size asked for."""
        return list(self._kept[1].values())

    @property
    def num_bytes(self) -> int:
        """Memory of what is remembered now; storage in common is counted once."""
        return num_bytes(self.tensors)

    def _derived(self, stamp: tuple) -> dict[Hashable, Tensor]:
        known, derived = self._kept
        return derived if known == stamp else {}
