"""The linear map from what the heads of a block give to what it adds to its tokens, and the proof that it is one.

Norm-based attention needs it. Where gates, adapters (LoRA), norms after the heads, or scales of other names make it
another map than the weights that follow attention, that method alone is refused.
"""

from itertools import product

import torch
from torch import Tensor

from vit_demo.trace.probe import Probe
from vit_demo.trace.structure import first_of
from vit_demo.trace.traced_vit import TracedViT


@torch.no_grad()
def proved_projections(network: TracedViT, probe: Probe) -> tuple[str, ...]:
    """The names of the projections that ``probe`` saw, empty for those of blocks that add something else.

    Whatever a module gets after the attentions of a block, less what a module around them got, must be what their
    projections give, but for a bias: the same vector for all tokens.
    """
    depth = network.config.depth
    width = first_of(probe.tokens[network.structure.exit][1]).shape[2]
    seen = [probe.projections.get(index, "") for index in range(depth)]
    names = [name if name and network.module.get_parameter(name).shape[0] == width else "" for name in seen]
    count = max(1, depth // len(network.structure.blocks))
    for start in range(0, depth, count):
        group = range(start, min(start + count, depth))
        if not all(names[index] for index in group) or not _is_added(network, probe, group):
            names[group.start : group.stop] = [""] * len(group)
    return tuple(names)


def _is_added(network: TracedViT, probe: Probe, group: range) -> bool:
    first, around, _ = probe.attended[group[0]]
    last, end = (probe.attended[index][0] if index < len(probe.attended) else None for index in (group[-1], group.stop))
    added = sum(  # [1, N, D]
        torch.einsum("bhnd,hdc->bnc", probe.attended[index][2].float(), network.output_projection(index).float())
        for index in group
    )
    assert isinstance(added, Tensor)
    before = [network.structure.unpack(x) for name, x in probe.started[:first] if name in around]
    after = [network.structure.unpack(x) for _, x in probe.started[last:end]]
    eps = max(torch.finfo(x.dtype).eps for x in (added, probe.attended[group[0]][2], *after))
    return any(_differ_by(x, y, added, eps) for x, y in product(before, after) if x.shape == y.shape == added.shape)


def _differ_by(x: Tensor, y: Tensor, added: Tensor, eps: float) -> bool:
    """Whether ``y`` is ``x + added`` to rounding, and a vector that all tokens share."""
    rest = y.float() - x.float() - added
    rounding = 8 * eps * y.abs().max() + min(1e3 * eps, 0.1) * added.abs().max()
    return bool((rest - rest.mean(1, keepdim=True)).abs().max() <= rounding)
