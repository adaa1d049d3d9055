"""Other patch sizes and grids from the same weights (FlexiViT, Beyer et al., 2022, https://arxiv.org/abs/2212.08013).

Everything is derived from the stored tensors, never from an earlier result, so errors cannot add up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

S = TypeVar("S", bound=Hashable)

NUM_SIZES = 8  # sizes that ``Resampled`` keeps; the least recently used is evicted


def _resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Bicubic, antialiased resize of ``[B, C, h, w]`` in float32, as used to resample public ViTs."""
    return F.interpolate(images.float(), size=size, mode="bicubic", antialias=True, align_corners=False)


@lru_cache(maxsize=16)
def _pi_matrix(old: int, new: int) -> Tensor:
    """The matrix ``[new * new, old * old]`` that turns a kernel for ``old`` pixels into one for ``new``.

    With B the matrix that resizes an old patch, the new kernel w' applied to a resized patch should equal w applied to
    the patch: ``(B x) . w' = x . w`` for all x, so ``B^T w' = w`` and w' = pinv(B^T) w.
    """
    with torch.inference_mode(False), torch.no_grad():
        # On the CPU, whatever device is the caller's default: the matrix serves every later call.
        basis = torch.eye(old * old, dtype=torch.float32, device="cpu").reshape(old * old, 1, old, old)
        resize_t = _resize(basis, (new, new)).reshape(old * old, new * new)  # B^T: [old^2, new^2]
        return torch.linalg.pinv(resize_t.double()).float()  # [new^2, old^2]


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Turns the caller's autocast off, so that a cached kernel has the precision of the stored one."""
    kind = device.type
    is_on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if is_on else nullcontext()  # most of a small product's time otherwise


def resample_patch_embed(kernel: Tensor, patch_size: int) -> Tensor:
    """Pseudo-inverse resize (PI-resize) of a patch embedding ``[D, C, p, p]`` to another patch size, in its dtype."""
    if kernel.shape[-1] == patch_size:
        return kernel
    matrix = _pi_matrix(kernel.shape[-1], patch_size).to(kernel.device)
    with without_autocast(kernel.device):
        resampled = kernel.float().flatten(2) @ matrix.T  # [D, C, p^2] -> [D, C, new^2]
    return resampled.unflatten(2, (patch_size, patch_size)).to(kernel.dtype)


def resample_pos_embed(positions: Tensor, grid: tuple[int, int], num_prefix_tokens: int) -> Tensor:
    """Learned positions on another grid, rectangular ones too; those of a prefix are kept as they are.

    ``[1, num_prefix_tokens + g * g, D]``, a square grid row by row, becomes ``[1, num_prefix_tokens + rows * cols,
    D]``, in the same dtype.
    """
    prefix, patches = positions[:, :num_prefix_tokens], positions[:, num_prefix_tokens:]
    side = int(patches.shape[1] ** 0.5)
    if grid == (side, side):
        return positions
    image = patches.unflatten(1, (side, side)).permute(0, 3, 1, 2)  # [1, g*g, D] -> [1, D, g, g]
    image = _resize(image, grid).to(positions.dtype)
    return torch.cat([prefix, image.flatten(2).transpose(1, 2)], dim=1)  # [1, num_prefix_tokens + rows*cols, D]


def num_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of memory that some tensors keep alive: whole storages, each once; on XLA, which has none, each tensor."""
    found: dict[int, int] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            found[storage._cdata] = storage.nbytes()  # not its data pointer, which is 0 for more than one device
        except RuntimeError:
            found[id(tensor)] = tensor.nbytes
    return sum(found.values())


class Resampled:
    """What was derived from a parameter for the last few sizes, of a network whose weights stay as they are.

    It keeps nothing until ``keep`` is called; a copy or a pickle keeps nothing again, because its weights may change.
    Threads may share it: its content is only ever replaced. At worst two of them derive the same size.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Tensor] | None = None

    def __reduce__(self) -> tuple[type[Resampled], tuple[()]]:
        return Resampled, ()

    def keep(self) -> None:
        """Keeps what is derived from now on."""
        self._kept = {}

    def get(self, parameter: Tensor, size: S, derive: Callable[[Tensor, S], Tensor]) -> Tensor:
        """``derive(parameter, size)``; with gradients, and while torch compiles, always derived anew."""
        kept = self._kept
        if kept is None or torch.compiler.is_compiling() or (parameter.requires_grad and torch.is_grad_enabled()):
            return derive(parameter, size)
        key = (size, parameter.device, parameter.dtype)
        found = kept.get(key)
        if found is None:
            # An inference tensor could not be used in a later backward.
            with torch.inference_mode(False), torch.no_grad():
                found = derive(parameter, size)
        others = [item for item in kept.items() if item[0] != key]
        self._kept = dict([*others[1 - NUM_SIZES :], (key, found)])  # the last used is the last
        return found

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors that are kept."""
        return list((self._kept or {}).values())
