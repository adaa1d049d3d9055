"""Which class a map is about, and where the head reads."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_demo.model import Trace, ViT
from vit_demo.model.trace import Attend

Target = int | Tensor | None
"""One class for all samples, or int64 ``[B]``; None for each sample's likeliest."""


def class_scores(logits: Tensor, target: Target) -> Tensor:
    """The logit ``[B]`` of each sample's class, from ``[B, K]``."""
    if target is None:
        return logits.amax(1)
    # Cloned, for autograd refuses a tensor that was made in inference mode.
    classes = torch.as_tensor(target, device=logits.device).expand(len(logits)).clone()
    return logits.gather(1, classes[:, None])[:, 0]


def pooling_weights(model: ViT, trace: Trace) -> Tensor:
    """The share ``[N]`` that each token of a sequence has in the vector which the head reads; they sum to 1."""
    # Of the vectors that are laid side by side for the head, none counts more than another.
    read = {
        "cls": [slice(0, 1)],
        "mean": [slice(trace.num_prefix, None)],
        "all": [slice(0, None)],
        "cls+mean": [slice(0, 1), slice(trace.num_prefix, None)],
        "cls+next": [slice(0, 2)],
    }[model.config.pool]
    weights = torch.zeros(trace.num_tokens, device=trace.q[0].device)
    for tokens in read:
        weights[tokens] += 1 / (len(weights[tokens]) * len(read))
    return weights


def differentiable_pass(
    model: ViT,
    images: Tensor,
    *,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    attend: Attend | None = None,
) -> tuple[Tensor, Trace]:
    """A pass whose graph is kept: call it with gradients enabled.

    Args:
        model: In eval mode.
        images: ``[B, C, height, width]``, normalised.
        patch_size: As in ``ViT.forward``.
        keep: As in ``ViT.forward``.
        attend: As in ``Trace``.

    Returns:
        Logits ``[B, K]`` and a full trace, both with their graph.
    """
    trace = Trace(full=True, attend=attend)
    images = images.detach().clone().requires_grad_()  # the weights may be frozen, and then start no graph
    return model(images, trace, patch_size=patch_size, keep=keep), trace
