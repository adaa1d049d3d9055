"""What each part of a network adds to a logit directly, along the sum that its tokens are.

The last tokens are the first ones, and what attention and MLP of every block added to them. A head that only norms,
pools and maps them linearly gives each of these terms a share of the logit, if what the norm divides by is held
(Elhage et al., 2021, https://transformer-circuits.pub/2021/framework).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.methods.gradient_rules import ModifiedBackward, missing_rule, node_name
from vit_demo.methods.targets import class_scores
from vit_demo.model.resample import without_autocast
from vit_demo.trace import PassOptions, Trace, TracedViT
from vit_demo.trace.reasons import NOT_SHOWN
from vit_demo.trace.running import hooked
from vit_demo.trace.trace import to_grid

NOT_LINEAR = (
    "The head of this network is more than a norm and linear maps, so a logit is no sum of what its blocks add: ask "
    "what is lost without each head (head_effects)."
)
NOT_ADDED = (
    "The blocks of this network do more than to add to their tokens, as where a norm follows the sum, so what an MLP "
    "or a head adds is not seen apart: ask what is lost without each head (head_effects), or silence heads and "
    "whole blocks."
)
CURVES = {
    "_Activation", "Abs", "Amax", "Clamp", "ClampMin", "LeakyRelu", "Max", "Maximum", "Minimum", "PreluKernel", "Relu",
}  # fmt: skip
SUMS = {
    "Add", "Alias", "Cat", "Clone", "Gather", "Permute", "Roll", "Scatter", "Slice", "Split", "SplitWithSizes",
    "ToCopy", "Transpose", "UnsafeView", "View", "Where",
}  # fmt: skip
"""Nodes of torch's graph by which tokens become tokens to which something was added."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each part of a network adds to a logit directly; their sum is the logit.

    Attributes:
        heads: float32 ``[blocks, H]``.
        mlps: float32 ``[blocks]``: what else a block adds than its attention; of a silent block, all that it adds.
        tokens: What the tokens before the first block add.
        bias: What the biases of output projections, of the last norm and of the head add.
        patches: float32 ``[blocks, H, rows, cols]``: from which patch each head took its part. What it took from the
            tokens before the patches is the rest.
    """

    heads: NDArray[np.float32]
    mlps: NDArray[np.float32]
    tokens: float
    bias: float
    patches: NDArray[np.float32] = field(repr=False)

    @property
    def logit(self) -> float:
        """The sum of all parts."""
        return float(self.heads.sum() + self.mlps.sum() + self.tokens + self.bias)


def contributions(
    model: TracedViT, images: Tensor, target: int, against: int | None = None, **options: Unpack[PassOptions]
) -> tuple[Tensor, Tensor, float, float, Tensor]:
    """The parts of ``Contributions`` for one image, in one pass.

    Raises:
        InputError: If the network is no such sum.
        PresetError: If what a block adds after attention is not what one linear map gives.
    """
    logits, trace, ends = _watched(model, images, **options)
    score, last = class_scores(logits, target, against).sum(), trace.tokens[-1]
    if missing_rule(logits, [last], CURVES):
        raise InputError(NOT_LINEAR)
    slope = torch.autograd.grad(score, last)[0][0].float()  # [N, D]
    tokens = [x.detach()[0].float() for x in trace.tokens]
    rest = float(score.detach()) - float((slope * tokens[-1]).sum())
    rows, start, mlps = slope.any(1).nonzero()[:, 0], 0, []
    by_token = slope.new_zeros(trace.num_blocks, trace.num_heads, trace.num_tokens)
    for index, end in enumerate(ends):
        added = float((slope * (tokens[index + 1] - tokens[index])).sum())
        for block in range(start, end if index not in model.intervention.blocks else start):
            by_token[block] = _of_heads(model, trace, block, slope, rows)
            bias = float(slope.sum(0) @ model.output_bias(block).detach().float())
            added, rest = added - float(by_token[block].sum()) - bias, rest + bias
        start = end
        mlps.append(added)
    first = float((slope * tokens[0]).sum())
    return by_token.sum(2), torch.tensor(mlps, dtype=torch.float32), first, rest, to_grid(by_token, trace)


def check_sum(model: TracedViT, images: Tensor, **options: Any) -> None:
    """Checks that each block adds to its tokens, and nothing else, so that its MLP can be told apart.

    ``InputError`` if one does not.
    """
    _watched(model, images, **options)


def _watched(model: TracedViT, images: Tensor, **options: Any) -> tuple[Tensor, Trace, list[int]]:
    """A pass with its graph, and how many attentions there were when each block ended; raises as ``check_sum``."""
    if not model.shows_tokens:
        raise InputError(NOT_SHOWN)
    trace, ends = Trace(record_tokens=True), list[int]()
    watching = hooked(model.blocks, leave=lambda *_: ends.append(len(trace.q)))
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        without_autocast(images.device),
        ModifiedBackward({}),
        watching,
    ):
        logits = model(images.detach().clone().requires_grad_(), trace, **options)
    if not all(map(_is_sum, trace.tokens, trace.tokens[1:])):
        raise InputError(NOT_ADDED)
    return logits, trace, ends


def _is_sum(before: Tensor, after: Tensor) -> bool:
    """Whether tokens are those before a block, to which something was added."""
    nodes: list[Any] = [after.grad_fn]
    for node in nodes:
        if node is before.grad_fn:
            return True
        if node is not None and node_name(node) in SUMS:
            nodes += [one for one, _ in node.next_functions]
    return False


@torch.no_grad()
def _of_heads(model: TracedViT, trace: Trace, block: int, slope: Tensor, rows: Tensor) -> Tensor:
    """What each head adds to a score through its output projection, by the token that it took it from: ``[H, N]``.

    Only ``rows`` of the slope ``[N, D]`` are not 0.
    """
    wanted = torch.einsum("nd,hed->hne", slope[rows], model.output_projection(block).float())
    v = trace.v[block][0].detach().float()  # [H, N, e]
    found = v.new_zeros(v.shape[:2])
    for part, attention in iter_attention_rows(trace.q[block][:, :, rows], trace.k[block]):
        found += (attention[0] * (wanted[:, part] @ v.mT)).sum(1)
    return found
