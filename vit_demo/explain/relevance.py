"""Class relevance (Chefer et al., 2021, https://arxiv.org/abs/2103.15679), without one stored attention matrix.

Each block passes relevance on by ``A_bar``, the mean over heads of ``(dA * A)^+``, where dA is the gradient of the
class's score with respect to the attention A. Two things make it cheap and leave it exact:

- ``dA[i, j] = <dO_i, v_j>`` with dO the gradient at the attention *output* ``O = A v``. One backward on the fused
  kernel gives dO of every block; A and dA follow from q, k, v and dO a few rows at a time.
- The whole ``R = (I + A_bar_L) ... (I + A_bar_1)`` is not wanted but only what the head reads of it, which is a row
  vector carried backwards, ``r <- r + r A_bar``. Rows of A_bar that meet a zero of r are not made.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.explain.attention import rows, rows_at_once, to_grid
from vit_demo.explain.targets import Target, class_scores, differentiable_pass, pooling_weights
from vit_demo.vit import Trace, ViT


def relevance(
    model: ViT,
    images: Tensor,
    target: Target,
    *,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    average_heads_first: bool = False,
) -> Tensor:
    """How much each patch speaks for a class, carried by the attention of all blocks.

    Args:
        model: In eval mode.
        images: ``[B, C, height, width]``, normalised.
        target: The class, or one for each sample.
        patch_size: As in ``ViT.forward``.
        keep: As in ``ViT.forward``.
        average_heads_first: Take the positive part of the heads' mean, not the mean of their positive parts: heads that
            disagree then cancel, which sharpens the map.

    Returns:
        ``[B, rows, cols]`` float32, at least 0. The identity's own term, the same for every patch, is left out.
    """
    with torch.inference_mode(False), torch.enable_grad():
        logits, trace = differentiable_pass(model, images, patch_size=patch_size, keep=keep)
        # Samples do not mix, so that one backward of the sum serves all of them.
        gradients = torch.autograd.grad(class_scores(logits, target).sum(), trace.o)
    return to_grid(carry(trace, gradients, pooling_weights(model, trace), average_heads_first), trace)


@torch.no_grad()
def carry(trace: Trace, gradients: tuple[Tensor, ...], start: Tensor, average_heads_first: bool = False) -> Tensor:
    """The row ``start (R - I)`` of the relevance R.

    Args:
        trace: Of the pass.
        gradients: At each block's attention output, ``[B, H, N, d]``.
        start: ``[N]``, at least 0: the share of each output token.
        average_heads_first: As in ``relevance``.

    Returns:
        ``[B, N]`` float32, prefix tokens included.
    """
    gained = torch.zeros(len(trace.q[0]), trace.num_tokens, device=start.device)
    for layer in reversed(range(trace.num_blocks)):
        q, k, v = trace.q[layer], trace.k[layer], trace.v[layer].float()
        weights = start + gained  # [B, N]
        passed = torch.zeros_like(gained)
        heard = weights.any(0).nonzero()[:, 0]
        for part in heard.split(max(1, rows_at_once(q) // 2)):  # half, for there are two arrays
            # The weights are not negative, so they may go in before the positive part is taken.
            d_o = gradients[layer][:, :, part].float() * (weights[:, None, part, None] / q.shape[1])
            shares = (d_o @ v.mT).mul_(rows(q[:, :, part], k))  # r dA * A: [B, H, c, N]
            if average_heads_first:
                passed += shares.sum(1).relu_().sum(1)
            else:
                passed += shares.relu_().sum((1, 2))
        gained += passed
    return gained
