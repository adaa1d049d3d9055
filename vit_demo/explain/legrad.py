"""LeGrad (Bousselham et al., 2024, https://arxiv.org/abs/2404.03214): the gradient of attention, block by block."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.explain.attention import rows_at_once, to_grid
from vit_demo.explain.targets import Target, class_scores, differentiable_pass, read_out
from vit_demo.vit import ViT


def legrad(
    model: ViT, images: Tensor, target: Target, *, patch_size: int | None = None, keep: Tensor | None = None
) -> Tensor:
    """Where more attention would have raised the class's score at each depth.

    The head reads the tokens after block l as if it were the last; the positive part of that score's gradient with
    respect to block l's attention is summed over the tokens that look, then averaged over heads and blocks. That
    gradient needs no attention at all: it is ``<dO_i, v_j>``, of the tokens i that the head reads. Arguments as in
    ``relevance``.

    Returns:
        ``[B, rows, cols]`` float32, at least 0.
    """
    with torch.inference_mode(False), torch.enable_grad():
        _, trace = differentiable_pass(model, images, patch_size=patch_size, keep=keep)
        scores = [class_scores(read_out(model, x), target).sum() for x in trace.x[1:]]
        # Each goes back through one block's MLP and stops there.
        gradients = [
            torch.autograd.grad(score, o, retain_graph=True)[0] for score, o in zip(scores, trace.o, strict=True)
        ]
    with torch.no_grad():
        maps = [_positive(gradient, v) for gradient, v in zip(gradients, trace.v, strict=True)]
    return to_grid(torch.stack(maps).mean(0), trace)


def _positive(gradient: Tensor, v: Tensor) -> Tensor:
    """Mean over heads and sum over i of ``<dO_i, v_j>^+``, ``[B, N]``, in chunks of i that have a gradient."""
    gradient, v = gradient.float(), v.float()
    total = v.new_zeros(len(v), v.shape[2])
    read = gradient.any(3).any(1).any(0).nonzero()[:, 0]
    for part in read.split(rows_at_once(v)):
        total += (gradient[:, :, part] @ v.mT).relu_().mean(1).sum(1)  # [B, H, c, N] -> [B, N]
    return total
