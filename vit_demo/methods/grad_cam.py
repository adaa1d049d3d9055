"""Grad-CAM (Selvaraju et al., 2017, https://arxiv.org/abs/1610.02391) of the tokens that enter the last block."""

from typing import Unpack

from torch import Tensor

from vit_demo.methods.registry import register
from vit_demo.methods.targets import Target, token_gradients
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.trace import to_grid


@register(
    "grad_cam",
    title="Grad-CAM",
    use="To compare with what is known of convolutional networks.",
    class_specific=True,
    cost="backward",
    unit="logit",
)
def grad_cam(
    model: TracedViT, images: Tensor, target: Target = None, *, against: Target = None, **options: Unpack[PassOptions]
) -> Tensor:
    """The channels of the last block's tokens, weighted by the mean gradient of a class's score over the patches.

    In a network whose head reads the class token the tokens after the last block have no gradient of their own, so
    those before it are read. Parameters as in ``vit_demo.methods``; values are at least 0.
    """
    tokens, gradients, trace = token_gradients(model, images, target, against, blocks=slice(-1, None), **options)
    weights = gradients[0][:, trace.num_prefix_tokens :].mean(1, keepdim=True)  # [B, 1, D]
    return to_grid((tokens[0] * weights).sum(2).relu_(), trace)
