"""Rollout and relevance in the usual way, with whole attention matrices: stored for every block, and multiplied.

Written here for the comparison, and correct: the rows of each matrix sum to 1, where popular versions forget to.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vit_demo.trace import TracedViT


def full_matrix_rollout(model: TracedViT) -> Callable[[Tensor], Tensor]:
    """The forward pass with explicit attention, then the product of N x N matrices: ``[B, N]``."""

    def run(images: Tensor) -> Tensor:
        with torch.inference_mode():
            _, attention = _explicit_pass(model, images)
            eye = torch.eye(attention[0].shape[-1], device=images.device)
            joint = eye.expand(len(images), -1, -1)
            for one in attention:
                joint = (one.mean(1) + eye) / 2 @ joint
            return joint[:, 0]

    return run


def full_matrix_relevance(model: TracedViT) -> Callable[[Tensor], Tensor]:
    """A pass and a backward that keep every matrix and its gradient, then the whole product: ``[B, N]``."""

    def run(images: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            logits, attention = _explicit_pass(model, images.clone().requires_grad_())
            gradients = torch.autograd.grad(logits.amax(1).sum(), attention)
        with torch.no_grad():
            eye = torch.eye(attention[0].shape[-1], device=images.device)
            joint = eye.expand(len(images), -1, -1)
            for one, gradient in zip(attention, gradients, strict=True):
                joint = joint + (one * gradient).clamp(min=0).mean(1) @ joint
            return (joint - eye)[:, 0]

    return run


def _explicit_pass(model: TracedViT, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits, and the attention ``[B, H, N, N]`` of every block."""
    p = model.patch_size
    x = model.embed(images, (images.shape[2] // p, images.shape[3] // p), p)
    maps: list[Tensor] = []
    for block in model.blocks:
        attention = block.attn
        q, k, v = attention.qkv(block.norm1(x)).unflatten(2, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
        maps.append((q * q.shape[-1] ** -0.5 @ k.mT).softmax(-1))
        x = x + block.ls1(attention.proj((maps[-1] @ v).transpose(1, 2).flatten(2)))
        x = x + block.ls2(block.mlp(block.norm2(x)))
    return model.forward_head(model.norm(x)), maps
