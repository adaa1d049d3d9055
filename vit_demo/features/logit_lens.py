"""The logit lens (nostalgebraist, 2020): the prediction from the tokens of each depth."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.features.patch_tokens import check_tokens
from vit_demo.trace import Recording, TracedViT


@torch.inference_mode()
def logit_lens(
    model: TracedViT, images: Tensor, *, patch_size: int | None = None, kept_patches: Tensor | None = None
) -> Tensor:
    """Applies final norm, pooling and head to the tokens of every depth. Arguments as in ``TracedViT.forward``.

    Returns:
        Logits ``[B, blocks + 1, K]`` float32: before the first block, then after each; the last are the model's output.
    """
    trace = Recording(record_tokens=True)
    model(images, trace, patch_size=patch_size, kept_patches=kept_patches)
    check_tokens(trace)
    return torch.stack([model.forward_head(x) for x in trace.tokens], dim=1).float()
