"""NACLIP (Hajimiri et al., 2025, https://arxiv.org/abs/2404.08181): each patch against a class, or against words.

The network's last block is changed, for this map alone: patches attend by the similarity of their keys, and more to
near ones than to far ones; what enters the block is left out, and so is its MLP. Then the head reads each patch.
"""

from typing import Unpack

import torch
from torch import Tensor

from vit_demo.errors import PresetError
from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.methods.registry import register
from vit_demo.methods.targets import Target, class_scores
from vit_demo.trace import PassOptions, Trace, TracedViT
from vit_demo.trace.attention_mode import fold
from vit_demo.trace.trace import to_grid

DEVIATION = 5.0  # standard deviation, in patches, of the Gaussian that is added to the scores; the paper's
NO_KEYS = (
    "The keys of this network are not seen, which this method needs: multiply queries with keys by matmul, bmm or "
    "einsum, or call torch's scaled_dot_product_attention."
)


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
    Parameters as in ``vit_demo.methods``. ``PresetError`` if what the last block adds is not what one linear map gives,
    or its keys are not known.
    """
    logits = model(images, trace := Trace(), **options)
    chosen = logits.argmax(1) if target is None else target
    together = model.calls_per_block  # attentions of the last block; more than one in parallel branches
    x = sum((_attended(model, trace, index) for index in range(-together, 0)), torch.zeros((), device=logits.device))
    scores = torch.stack([_scores(model, tokens, chosen, against, index) for index, tokens in enumerate(x)])  # [B, N]
    return to_grid(torch.nn.functional.pad(scores - scores.mean(1, keepdim=True), (trace.num_prefix_tokens, 0)), trace)


def _scores(model: TracedViT, tokens: Tensor, target: Target, against: Target, index: int) -> Tensor:
    """The score ``[N]`` of each patch of one image."""
    chosen, other = (one[index] if isinstance(one, Tensor) and one.dim() else one for one in (target, against))
    return class_scores(model.read_patches(tokens).float(), chosen, other)


def _attended(model: TracedViT, trace: Trace, index: int) -> Tensor:
    """The output ``[B, N, D]`` of an attention of the last block if its tokens attend by their keys."""
    k, v = keys(trace, index), trace.v[index].float()
    near = neighbourhood(trace).to(k.device)
    output = model.output_projection(index).float()  # [H, d, D]
    parts = [
        torch.einsum("bhnd,hdc->bnc", rows @ v, output) for _, rows in iter_attention_rows(*fold(k, k, near, None))
    ]
    return torch.cat(parts, 1) + model.output_bias(index).float()


def keys(trace: Trace, index: int) -> Tensor:
    """The keys ``[B, H, N, d]`` of an attention, without the 1 at each token's own place that stands for a mask.

    ``PresetError`` if that is all that is known of them.
    """
    k, tokens = trace.k[index], trace.num_prefix_tokens + trace.grid[0] * trace.grid[1]
    for width in (tokens, k.shape[2]):  # patches were dropped by a mask, or left out
        places = k[..., -width:]
        if k.shape[3] >= width and bool(((places == 1).sum(3) == 1).all()) and bool((places.sum(3) == 1).all()):
            k = k[..., :-width]
            break
    if not k.shape[3]:
        raise PresetError(NO_KEYS)
    return k


def neighbourhood(trace: Trace) -> Tensor:
    """A Gaussian of the distance of two patches, added to their score: ``[B or 1, 1, N, N]``."""
    rows, cols = trace.grid
    patches = torch.arange(rows * cols)[None] if trace.kept_patches is None else trace.kept_patches.cpu()  # [B, K]
    row, col = patches // cols, patches % cols
    distance = (row[:, :, None] - row[:, None]) ** 2 + (col[:, :, None] - col[:, None]) ** 2  # [B, K, K]
    near = torch.exp(-distance.float() / (2 * DEVIATION**2))
    return torch.nn.functional.pad(near, (trace.num_prefix_tokens, 0) * 2)[:, None]
