"""Integrated gradients (Sundararajan et al., 2017, https://arxiv.org/abs/1703.01365), added up over each patch."""

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.registry import Option, register
from vit_demo.methods.subsets import Progress, sequence_patches, sequences_per_batch
from vit_demo.methods.targets import class_scores
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.trace import scatter_to_grid

BACKWARD_MEMORY = 8  # how many times the memory of a pass its backward needs, about


@register(
    "integrated_gradients",
    title="Integrated gradients",
    use="Where contributions should add up to the difference from a grey picture.",
    class_specific=True,
    cost="many passes",
    unit="logit",
    signed=True,
    options=[Option(name="steps", kind="integer", bounds=(1, 1000))],
)
def integrated_gradients(
    model: TracedViT,
    images: Tensor,
    target: int,
    *,
    steps: int = 32,
    against: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> Tensor:
    """Pixel times gradient, the gradient averaged over the way from a plain picture of the mean colour to this one.

    The mean colour is 0 in normalised images. ``steps`` pictures are taken on the way, at the middle of as many equal
    parts: with enough of them, the values sum to what the score gains. Other parameters as in ``vit_demo.methods``.
    """
    grid, patches = sequence_patches(model, images, **options)
    tokens = BACKWARD_MEMORY * (len(patches) + model.config.num_prefix_tokens)
    done = 0
    with torch.inference_mode(False), torch.enable_grad():
        total = torch.zeros_like(images, dtype=torch.float32)
        picture = images.detach().clone()
        shares = (torch.arange(steps, device=images.device, dtype=torch.float32) + 0.5) / steps
        for part in shares.split(sequences_per_batch(tokens)):
            scaled = (picture * part[:, None, None, None].to(picture.dtype)).requires_grad_()
            logits = model(scaled, **options)
            (slope,) = torch.autograd.grad(class_scores(logits.float(), target, against).sum(), scaled)
            total += slope.float().sum(0, keepdim=True)
            done += len(part)
            if progress is not None:
                progress(done, steps)
    pixels = (total * images.float() / steps).sum(1)  # [1, height, width]
    size = images.shape[2] // grid[0]
    values = F.avg_pool2d(pixels, size, divisor_override=1).flatten(1)  # [1, rows * cols]
    return scatter_to_grid(values[:, patches], grid, options.get("kept_patches"))
