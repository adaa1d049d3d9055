"""A pretrained ViT as the teacher of another: its logits, and its features of the image and of each patch."""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.model import Trace, ViT
from vit_demo.model.vit import Block


class TeacherOutputs(NamedTuple):
    """A teacher's outputs for a batch, float32. Over photos, each feature has mean 0 and standard deviation 1.

    Attributes:
        logits: ``[B, classes]``.
        features: ``[B, D]``: the input of the head.
        patches: ``[B, D, rows, cols]``: the normalised patch tokens that enter the last block, averaged over 2 x 2
            patches. Those after it never reach the loss in pretraining.
    """

    logits: Tensor
    features: Tensor
    patches: Tensor


class PretrainedTeacher:
    """Runs a pretrained ViT on the batches of its student.

    Args:
        network: Takes images in [-1, 1]; put into eval mode.
        photos: uint8 ``[N, 3, side, side]``: photos on which the features are standardised.
    """

    def __init__(self, network: ViT, photos: Tensor) -> None:
        self.network = network.eval()
        self.width = network.config.embed_dim
        device = next(network.parameters()).device
        outputs = [self._forward(batch.to(device).float() / 255) for batch in photos.split(64)]
        _, features, patches = (torch.cat(parts) for parts in zip(*outputs, strict=True))
        self.feature_scale = torch.std_mean(features, dim=0)  # [D] each
        self.patch_scale = torch.std_mean(patches, dim=(0, 2, 3), keepdim=True)  # [1, D, 1, 1] each

    @torch.no_grad()
    def __call__(self, images: Tensor) -> TeacherOutputs:
        """The outputs for images ``[B, 3, side, side]`` in [0, 1], of any side that is a multiple of the patch size."""
        logits, features, patches = self._forward(images)
        (deviation, mean), (patch_deviation, patch_mean) = self.feature_scale, self.patch_scale
        return TeacherOutputs(logits, (features - mean) / deviation, (patches - patch_mean) / patch_deviation)

    @torch.no_grad()
    def _forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        trace = Trace(record_tokens=True)
        features = self.network.forward_head(self.network.forward_features(images * 2 - 1, trace), pre_logits=True)
        # [B, prefix + rows * cols, D] -> [B, rows * cols, D]
        tokens = cast(Block, self.network.blocks[-1]).norm1(trace.tokens[-2])[:, trace.num_prefix_tokens :]
        patches = F.avg_pool2d(tokens.float().mT.unflatten(2, trace.grid), 2)  # [B, D, rows / 2, cols / 2]
        return self.network.head(features).float(), features.float(), patches
