"""Randomization: whether a map depends on what was learned (Adebayo et al., 2018, https://arxiv.org/abs/1810.03292)."""

import copy
from typing import Unpack

import torch
from torch import Tensor, nn

from vit_demo.methods.local_surrogate import ranks
from vit_demo.methods.registry import find_method
from vit_demo.methods.subsets import Progress
from vit_demo.trace import PassOptions, TracedViT


@torch.inference_mode(False)  # whose tensors, as those of a copied network, have no gradients
def randomization(
    model: TracedViT,
    images: Tensor,
    target: int,
    method: str,
    *,
    against: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> list[float]:
    """How similar a map stays while the weights are randomized from the head down (cascading randomization).

    First the head, then one more block at a time is re-initialised by shuffling the values of each weight tensor, which
    keeps their distribution. A map that stays similar shows the picture, not what was learned of it. The class stays
    the same, and so does ``against``, with which it is compared. The model is left as it is. ``progress`` is called
    after every map.

    Returns:
        Spearman's correlation with the trained network's map over the kept patches: of the trained network itself (1),
        with a randomized head, then with one more randomized block each time; ``depth + 2`` numbers.
    """
    compute = find_method(method).compute
    classes = {} if against is None else {"against": against}
    kept_patches = options.get("kept_patches")
    randomized = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)

    def values_of(network: TracedViT) -> Tensor:
        values = compute(network, images, target, **classes, **options)[0].flatten()
        # A dropped patch has no value of its own: it is 0 in every map.
        return values if kept_patches is None else values[kept_patches[0].to(values.device)]

    trained = values_of(model)
    correlations = [1.0]
    parts = (randomized.head, *reversed(randomized.blocks))
    for part in parts:
        shuffle_weights(part, generator)
        correlations.append(spearman(trained, values_of(randomized)))
        if progress is not None:
            progress(len(correlations), 1 + len(parts))
    return correlations


def spearman(first: Tensor, second: Tensor) -> float:
    """Spearman's rank correlation of two maps of the same shape, in [-1, 1]; 0 where one of them is constant."""
    pair = torch.stack([ranks(first.flatten()), ranks(second.flatten())]).cpu().double()
    pair = pair - pair.mean(1, keepdim=True)
    length = pair.norm(dim=1).prod()
    # Rounding may leave the interval by the last digit.
    return min(1.0, max(-1.0, float(pair[0] @ pair[1] / length))) if length > 0 else 0.0


@torch.no_grad()
def shuffle_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Puts the numbers of each parameter into a random order, in place."""
    for parameter in module.parameters():
        order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
        parameter.copy_(parameter.flatten()[order].view_as(parameter))
