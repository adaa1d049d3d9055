"""A ViT that learns from another: beside its logits it guesses what its teacher makes of the image and of each patch.

The guesses make the class token hold what the teacher's holds (FitNets; Romero et al., 2014,
https://arxiv.org/abs/1412.6550), and every patch what stands there, which a ViT hardly learns from few photos by itself
(locality guidance; Li et al., 2022, https://arxiv.org/abs/2207.10026). The maps that guess are not shipped.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT


class Student(nn.Module):
    """A ViT, and two linear maps that guess at its teacher's features.

    Args:
        vit: The network that learns.
        features: Width of what the teacher's head reads.
        patches: Width of what the teacher makes of a patch.
    """

    def __init__(self, vit: ViT, features: int, patches: int) -> None:
        super().__init__()
        self.vit = vit
        self.features = nn.Linear(vit.config.head_width, features)
        self.patches = nn.Linear(vit.config.embed_dim, patches)

    def forward(
        self, images: Tensor, *, patch_size: int | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits ``[B, classes]``, guesses at the features ``[B, features]`` and at the patches ``[B, K, patches]``."""
        tokens = self.vit.encode(images, patch_size=patch_size, keep=keep)  # [B, prefix + K, D]
        pooled = self.vit.pool(tokens)
        return self.vit.head(pooled), self.features(pooled), self.patches(tokens[:, self.vit.config.num_prefix :])


def at_patches(maps: Tensor, share: Tensor, patch_size: int, keep: Tensor | None = None) -> Tensor:
    """What a teacher makes of the places where a student has its patches.

    Args:
        maps: ``[B, D, rows, cols]``, spread over each image, in any resolution.
        share: ``[1, height, width]``: how much of its neighbour each image of the batch has got; see ``Mix``.
        patch_size: The student's, in pixels.
        keep: ``[B, K]``: the patches that the student sees; all by default.

    Returns:
        ``[B, K, D]``.
    """
    share = F.avg_pool2d(share, patch_size)  # [1, rows, cols]
    maps = F.interpolate(maps, share.shape[1:], mode="bilinear")
    maps = maps + share * (maps.roll(1, 0) - maps)
    wanted = maps.flatten(2).mT  # [B, rows * cols, D]
    return wanted if keep is None else wanted.gather(1, keep[:, :, None].expand(-1, -1, wanted.shape[2]))
