"""NACLIP (Hajimiri et al., 2025, https://arxiv.org/abs/2404.08181): each patch against a class, or against words.

The network's last block is changed, for this map alone: patches attend by the similarity of their keys, and more to
near ones than to far ones; what enters the block is left out, and so is its MLP. Then the head reads each patch.
"""

from typing import Unpack

import torch
from torch import Tensor

from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.methods.registry import register
from vit_demo.methods.targets import Target, class_scores
from vit_demo.trace import PassOptions, Trace, TracedViT
from vit_demo.trace.attention_mode import fold
from vit_demo.trace.reading import read_patches
from vit_demo.trace.trace import to_grid

DEVIATION = 5.0
"""Of the Gaussian that is added to the scores, in patches; the paper's."""


@register(
    "naclip",
    title="NACLIP",
    use="Made for CLIP: which patches speak for a word or class by themselves.",
    class_specific=True,
    cost="forward",
    unit="logit",
    signed=True,
)
@torch.no_grad()
def naclip(
    model: TracedViT, images: Tensor, target: Target = None, *, against: Target = None, **options: Unpack[PassOptions]
) -> Tensor:
    """The score that the head gives each patch for a class, less the mean of all patches.

    The published map compares the scores of several words at each patch, for which see the predictions of patches.
    Parameters as in ``vit_demo.methods``.

    Returns:
        Values that add up to 0.

    Raises:
        PresetError: If what the last block adds is not what one linear map gives.
    """
    logits = model(images, trace := Trace(), **options)
    chosen = logits.argmax(1) if target is None else target
    together = model.calls_per_block  # attentions of the last block; more than one in parallel branches
    x = sum((_attended(model, trace, index) for index in range(-together, 0)), torch.zeros((), device=logits.device))
    scores = torch.stack([_scores(model, tokens, chosen, against, index) for index, tokens in enumerate(x)])  # [B, N]
    return to_grid(torch.nn.functional.pad(scores - scores.mean(1, keepdim=True), (trace.num_prefix_tokens, 0)), trace)


def _scores(model: TracedViT, tokens: Tensor, target: Target, against: Target, index: int) -> Tensor:
    """The score of each patch of one image, ``[N]``."""
    chosen, other = (one[index] if isinstance(one, Tensor) and one.dim() else one for one in (target, against))
    return class_scores(read_patches(model, tokens).float(), chosen, other)


def _attended(model: TracedViT, trace: Trace, index: int) -> Tensor:
    """What an attention of the last block gives where its tokens attend by their keys, ``[B, N, D]``."""
    k, v = trace.k[index], trace.v[index].float()
    k = k[..., : v.shape[3]]  # without what stands for a mask
    near = neighbourhood(trace).to(k.device)
    output = model.output_projection(index).float()  # [H, d, D]
    parts = [
        torch.einsum("bhnd,hdc->bnc", rows @ v, output) for _, rows in iter_attention_rows(*fold(k, k, near, None))
    ]
    return torch.cat(parts, 1) + model.output_bias(index).float()


def neighbourhood(trace: Trace) -> Tensor:
    """What is added to the score of each pair of tokens, ``[B, 1, N, N]`` or ``[1, 1, N, N]``.

    A Gaussian of the distance of two patches; 0 where one of both is no patch.
    """
    rows, cols = trace.grid
    patches = torch.arange(rows * cols)[None] if trace.kept_patches is None else trace.kept_patches.cpu()  # [B, K]
    row, col = patches // cols, patches % cols
    distance = (row[:, :, None] - row[:, None]) ** 2 + (col[:, :, None] - col[:, None]) ** 2  # [B, K, K]
    near = torch.exp(-distance.float() / (2 * DEVIATION**2))
    return torch.nn.functional.pad(near, (trace.num_prefix_tokens, 0) * 2)[:, None]
