"""A ViT with two extra linear maps that predict its teacher's features of the image and of each patch.

Predicting the features trains the class token (FitNets; Romero et al., 2014, https://arxiv.org/abs/1412.6550) and the
patch tokens (locality guidance; Li et al., 2022, https://arxiv.org/abs/2207.10026) directly, which labels of few photos
hardly do. The extra maps are not exported.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT


class Student(nn.Module):
    """A ViT with maps to its teacher's features.

    Args:
        vit: The network to train.
        width: Of the teacher's features.
    """

    def __init__(self, vit: ViT, width: int) -> None:
        super().__init__()
        self.vit = vit
        self.features = nn.Linear(vit.config.num_features, width)
        self.patches = nn.Linear(vit.config.embed_dim, width)

    def forward(
        self, images: Tensor, *, patch_size: int | None = None, kept_patches: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Arguments as in ``ViT``.

        Returns:
            Logits ``[B, classes]``, predicted image features ``[B, width]`` and predicted patch features
            ``[B, K, width]``.
        """
        tokens = self.vit.forward_features(
            images, patch_size=patch_size, kept_patches=kept_patches
        )  # [B, prefix + K, D]
        pooled = self.vit.forward_head(tokens, pre_logits=True)
        return (
            self.vit.head(pooled),
            self.features(pooled),
            self.patches(tokens[:, self.vit.config.num_prefix_tokens :]),
        )


def resample_patch_features(maps: Tensor, grid: tuple[int, int], kept_patches: Tensor | None = None) -> Tensor:
    """A teacher's patch features at the patches of its student.

    Args:
        maps: ``[B, D, rows, cols]``: the features, in any resolution.
        grid: Rows and columns of the student's patches.
        kept_patches: ``[B, K]``: the patches that the student receives; all by default.

    Returns:
        ``[B, K, D]``.
    """
    features = F.interpolate(maps, grid, mode="bilinear").flatten(2).mT  # [B, rows * cols, D]
    if kept_patches is None:
        return features
    return features.gather(1, kept_patches[:, :, None].expand(-1, -1, features.shape[2]))
