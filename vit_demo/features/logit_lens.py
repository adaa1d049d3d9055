"""The logit lens (nostalgebraist, 2020): what each depth would have said."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.model import Trace, ViT


@torch.inference_mode()
def lens(model: ViT, images: Tensor, *, patch_size: int | None = None, keep: Tensor | None = None) -> Tensor:
    """Sends the tokens of every depth through final norm, pooling and head. Arguments as in ``ViT.forward``.

    Returns:
        Logits ``[B, blocks + 1, K]`` float32: before the first block, then after each; the last are the model's own.
    """
    trace = Trace(full=True)
    model(images, trace, patch_size=patch_size, keep=keep)
    return torch.stack([model.head(model.pool(model.norm(x))) for x in trace.x], dim=1).float()
