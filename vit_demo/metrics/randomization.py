"""Does a map depend on what was learned? The cascading check of Adebayo et al. (2018, https://arxiv.org/abs/1810.03292)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from vit_demo.methods.ranks import spearman
from vit_demo.methods.registry import find_method
from vit_demo.methods.subsets import Progress
from vit_demo.model import ViT


def randomization(
    model: ViT,
    images: Tensor,
    target: int,
    method: str,
    *,
    seed: int = 0,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    progress: Progress | None = None,
) -> list[float]:
    """How alike a map stays while the network forgets, from its top to its bottom.

    First the head, then one block more at a time is re-initialised, each weight drawn anew from the numbers of its own
    tensor, which keeps their spread. A map that stays alike shows the picture, not what the network knows of it.

    Args:
        model: In eval mode; it is left as it is.
        images: ``[1, C, height, width]``, normalised.
        target: The class; the same throughout.
        method: One of ``METHODS``.
        seed: Of the drawing.
        patch_size: As in ``ViT.forward``.
        keep: As in ``ViT.forward``.
        progress: Told after every map.

    Returns:
        Spearman's correlation with the trained network's map: of the trained network itself (1), without its head, then
        without one more block each time; ``depth + 2`` numbers.
    """
    compute = find_method(method).compute
    forgetful = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    trained = compute(model, images, target, patch_size=patch_size, keep=keep)[0]
    likeness = [spearman(trained, trained)]
    parts = (forgetful.head, *reversed(forgetful.blocks))
    for part in parts:
        shuffle_weights(part, generator)
        values = compute(forgetful, images, target, patch_size=patch_size, keep=keep)[0]
        likeness.append(spearman(trained, values))
        if progress is not None:
            progress(len(likeness), 1 + len(parts))
    return likeness


@torch.no_grad()
def shuffle_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Puts the numbers of each parameter into a random order, in place."""
    for parameter in module.parameters():
        order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
        parameter.copy_(parameter.flatten()[order].view_as(parameter))
