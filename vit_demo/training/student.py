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
    """A ViT with maps to its teacher's feature spaces.

    Args:
        vit: The network to train.
        feature_dim: Width of the teacher's image features.
        patch_dim: Width of the teacher's patch features.
    """

    def __init__(self, vit: ViT, feature_dim: int, patch_dim: int) -> None:
        super().__init__()
        self.vit = vit
        self.features = nn.Linear(vit.config.num_features, feature_dim)
        self.patches = nn.Linear(vit.config.embed_dim, patch_dim)

    def forward(
        self, images: Tensor, *, patch_size: int | None = None, kept_patches: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Arguments as in ``ViT``.

        Returns:
            Logits ``[B, classes]``, predicted image features ``[B, feature_dim]`` and predicted patch features
            ``[B, K, patch_dim]``.
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


def resample_patch_features(
    maps: Tensor, mix_weights: Tensor, patch_size: int, kept_patches: Tensor | None = None
) -> Tensor:
    """A teacher's patch features at the patches of a batch of mixed images.

    Args:
        maps: ``[B, D, rows, cols]``: the features before mixing, in any resolution.
        mix_weights: ``[1, height, width]``: the weight of the previous image in each pixel; see ``MixUpOrCutMix``.
        patch_size: The student's, in pixels.
        kept_patches: ``[B, K]``: the patches that the student receives; all by default.

    Returns:
        ``[B, K, D]``.
    """
    weights = F.avg_pool2d(mix_weights, patch_size)  # [1, rows, cols]
    maps = F.interpolate(maps, weights.shape[1:], mode="bilinear")
    maps = maps + weights * (maps.roll(1, 0) - maps)
    features = maps.flatten(2).mT  # [B, rows * cols, D]
    return (
        features
        if kept_patches is None
        else features.gather(1, kept_patches[:, :, None].expand(-1, -1, features.shape[2]))
    )
