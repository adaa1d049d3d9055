"""Occlusion (Zeiler and Fergus, 2014, https://arxiv.org/abs/1311.2901), by dropping patches from the sequence."""

from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.registry import Option, register
from vit_demo.methods.subsets import Progress, log_probabilities, sequence_patches
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.trace import scatter_to_grid


@register(
    "occlusion",
    title="Occlusion",
    use="To see what the prediction loses without one patch, the plainest question.",
    class_specific=True,
    cost="many passes",
    unit="log-probability",
    signed=True,
    options=[Option(name="window", kind="integer", bounds=(1, 99))],
)
def occlusion(
    model: TracedViT,
    images: Tensor,
    target: int,
    *,
    window: int = 1,
    against: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> Tensor:
    """The log-probability that the class loses when a patch, or a window around it, is dropped.

    ``log p(class | all) - log p(class | all but the window)``; dropped patches leave the sequence, so that no grey or
    black square enters the picture. ``window`` is the side of the square centred on each patch, in patches, odd; it is
    cut off at the edges. With ``against`` the map shows what the logarithm of the ratio of both probabilities loses;
    without probabilities, what the logit loses. Other parameters as in ``vit_demo.methods``. ``InputError`` if the
    window is even, or so large that nothing would be left.
    """
    if window < 1 or window % 2 == 0:
        raise InputError(f"A window of {window} patches has no middle: choose an odd number.")
    grid, patches = sequence_patches(model, images, **options)
    place = torch.stack([patches // grid[1], patches % grid[1]])  # [2, K]
    distance = (place[:, :, None] - place[:, None]).abs().amax(0)  # [K, K]
    stays = distance > window // 2  # row i is the window centred on patch i
    if not stays.any(1).all():
        raise InputError(f"A window of {window} patches leaves nothing of a grid of {grid[0]} x {grid[1]}.")
    score = partial(log_probabilities, model, images, target, against=against, **options)
    lost = score(torch.ones_like(stays[:1])) - score(stays, progress=progress)
    return scatter_to_grid(lost[None], grid, options.get("kept_patches"))
