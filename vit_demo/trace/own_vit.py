"""A network of this package: its parts are known, so nothing of it is probed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vit_demo.model import ViT
from vit_demo.model.resample import resample_patch_embed
from vit_demo.trace.structure import Structure
from vit_demo.trace.traced_vit import TracedViT


class OwnViT(TracedViT):
    """A ``ViT`` as a ``TracedViT``, with any patch size.

    Args:
        vit: The network; its patch size is that of passes that name none.
        patch_size: Another, in pixels.
    """

    module: ViT
    is_own = True

    def __init__(self, vit: ViT, patch_size: int | None = None) -> None:
        blocks = tuple(f"blocks.{index}" for index in range(vit.config.depth))
        is_fused = vit.config.projection == "fused"
        projections = tuple(f"{block}.attn.proj.weight" for block in blocks) if is_fused else ()
        kernels = tuple(f"{block}.attn.attend" for block in blocks)
        norm = "norm" if vit.config.pool.startswith("cls") else "fc_norm"
        super().__init__(vit, vit.config, Structure(blocks, blocks[0], blocks[-1], norm, projections, kernels))
        self.patch_size = patch_size or vit.patch_size

    def options(self, images: Tensor, patch_size: int) -> dict[str, Any]:
        """What the network gets beside the images."""
        return {"patch_size": patch_size}

    def forward_head(self, x: Tensor) -> Tensor:
        """What the network makes of its last tokens ``[B, N, D]``, without a pass."""
        return self.module.forward_head(self.module.norm(x))

    def output_projection(self, block: int) -> Tensor:
        """The map ``[H, d, D]`` from heads to tokens: the identity where a head adds to its own slice of the tokens."""
        if self.structure.projections:
            return super().output_projection(block)
        identity = torch.eye(self.config.embed_dim, dtype=torch.float32, device=self.device)
        return identity.unflatten(0, (self.config.num_heads, -1))

    def positions(self, grid: tuple[int, int]) -> tuple[str, Tensor]:
        """The kind of positions, and those ``[rows * cols, D]`` of a grid."""
        return self.config.pos_embed, self.module.pos_embed_for(grid)[0, self.module.num_pos_embed_prefix :]

    def filters(self, patch_size: int) -> tuple[Tensor, Tensor | None]:
        """The filters ``[D, C, p, p]`` and biases ``[D]`` of the patches, resampled."""
        embedding = self.module.patch_embed
        kernel = embedding.kernels.get(embedding.proj.weight, patch_size, resample_patch_embed)
        return kernel, embedding.proj.bias

    def resized(self, patch_size: int) -> TracedViT:
        """The network with another patch size, of the same weights."""
        return self if patch_size == self.patch_size else OwnViT(self.module, patch_size)

    @property
    def dtype(self) -> torch.dtype:
        """The type of its weights."""
        return self.module.patch_embed.proj.weight.dtype
