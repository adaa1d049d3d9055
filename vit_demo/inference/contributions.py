"""What each part of a network adds to a logit directly, along the sum that its tokens are.

The last tokens are the first ones, and what attention and MLP of every block added to them. A head that only norms,
pools and maps them linearly gives each of these terms a share of the logit, if what the norm divides by is held
(Elhage et al., 2021, https://transformer-circuits.pub/2021/framework). Where what follows attention is no weight that
is known, as in a network that was pruned, the graph is asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from vit_demo.errors import InputError, PresetError
from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.methods.gradient_rules import ModifiedBackward, missing_rule, node_name
from vit_demo.methods.targets import class_scores
from vit_demo.model.resample import without_autocast
from vit_demo.trace import PassOptions, Trace, TracedViT
from vit_demo.trace.probe import is_tokens
from vit_demo.trace.reasons import NO_PROJECTION, NOT_SHOWN
from vit_demo.trace.running import hooked
from vit_demo.trace.structure import first_of, input_of
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
    "_Activation", "Abs", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "Amax", "Clamp", "ClampMin", "LeakyRelu", "Max",
    "MaxPool2DWithIndices", "MaxPool3DWithIndices", "Maximum", "Minimum", "PreluKernel", "Relu",
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
    logits, trace, ends, branches = _watched(model, images, **options)
    last = trace.tokens[-1]
    with torch.inference_mode(False), torch.enable_grad():
        score = class_scores(logits, target, against).sum()
    if missing_rule(logits, [last], CURVES):
        raise InputError(NOT_LINEAR)
    slope = torch.autograd.grad(score, last, retain_graph=bool(branches))[0].float()  # [1, N, D]
    tokens = [x.detach().float() for x in trace.tokens]
    rest, start, mlps = float(score.detach()) - float((slope * tokens[-1]).sum()), 0, []
    by_token = slope.new_zeros(trace.num_blocks, trace.num_heads, trace.num_tokens)
    for index, end in enumerate(ends):
        added = float((slope * (tokens[index + 1] - tokens[index])).sum())
        for block in range(start, end if index not in model.intervention.blocks else start):
            if branches and not model.structure.projections[block]:
                wanted, bias = branches[block].asked(trace.tokens[index], slope)
            else:
                wanted = torch.einsum("nd,hed->hne", slope[0], model.output_projection(block).detach().float())
                bias = float(slope.sum((0, 1)) @ model.output_bias(block).detach().float())
            by_token[block] = _of_heads(trace, block, wanted)
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


@dataclass
class _Branch:
    """What an attention gives ``[1, H, N, d]``, what its block got, and the first tokens with what was made of it."""

    out: Tensor
    start: Tensor
    after: Tensor | None = None

    def asked(self, before: Tensor, slope: Tensor) -> tuple[Tensor, float]:
        """The slope at what the heads give, ``[H, N, d]``, and what the bias of their map adds to the score.

        ``PresetError`` if the map is not linear.
        """
        if self.after is None or missing_rule(self.after, [self.out, self.start], CURVES):
            raise PresetError(NO_PROJECTION)
        given = slope.to(self.after.dtype)
        (wanted,) = torch.autograd.grad(self.after, self.out, given, retain_graph=True, materialize_grads=True)
        with torch.no_grad():
            return wanted[0].float(), float((slope * (self.after - before)).sum() - (wanted * self.out).sum())


def _watched(model: TracedViT, images: Tensor, **options: Any) -> tuple[Tensor, Trace, list[int], list[_Branch]]:
    """A pass with its graph, how many attentions there were when each block ended, and their branches.

    The latter only where the output projection of some block is not a weight that is known. Raises as ``check_sum``.
    """
    if not model.shows_tokens:
        raise InputError(NOT_SHOWN)
    trace, ends, structure = Trace(record_tokens=True), list[int](), model.structure
    branches, starts = list[_Branch](), list[Tensor]()
    kept, prefix = options.get("kept_patches"), model.config.num_prefix_tokens

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        branches.append(_Branch(F.scaled_dot_product_attention(q, k, v), starts[-1]))
        return branches[-1].out

    def find_sum(given: Any) -> None:
        new = [branch for branch in branches if branch.after is None]
        is_new = new and is_tokens(given) and first_of(given).grad_fn is not starts[-1].grad_fn
        if is_new and _is_sum(starts[-1], first_of(given)):
            x = structure.unpack(given)
            if kept is not None and x.shape[1] > trace.num_tokens:  # with dropped patches, which nothing attends to
                x = torch.cat([x[:, :prefix], x[:, prefix:].take_along_dim(kept[:, :, None], 1)], 1)
            for branch in new:
                branch.after = x

    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        given = input_of(args, kwargs)
        if module in blocks:
            starts.append(first_of(given))
        find_sum(given)

    def leave(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        ends.append(len(trace.q))
        find_sum(output)

    blocks, asks = model.blocks, "" in structure.projections
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        without_autocast(images.device),
        ModifiedBackward({}),
        hooked(blocks, leave=leave),
        hooked((part for block in blocks if asks for part in block.modules()), enter),
    ):
        images = images.detach().clone().requires_grad_()
        logits = model(images, trace, attention_fn=attend if asks else None, **options)
    if not all(map(_is_sum, trace.tokens, trace.tokens[1:])):
        raise InputError(NOT_ADDED)
    return logits, trace, ends, branches


def _is_sum(before: Tensor, after: Tensor) -> bool:
    """Whether the later tokens are the earlier ones with something added to them."""
    nodes: list[Any] = [after.grad_fn]
    for node in nodes:
        if node is before.grad_fn:
            return True
        if node is not None and node_name(node) in SUMS:
            nodes += [one for one, _ in node.next_functions]
    return False


@torch.no_grad()
def _of_heads(trace: Trace, block: int, wanted: Tensor) -> Tensor:
    """What each head adds to a score, by the token that it took it from, ``[H, N]``.

    ``wanted`` ``[H, N, d]`` is the slope of the score at what the heads give, 0 for most tokens of most networks.
    """
    rows = wanted.any(2).any(0).nonzero()[:, 0]
    v = trace.v[block][0].detach().float()  # [H, N, d]
    found = v.new_zeros(v.shape[:2])
    for part, attention in iter_attention_rows(trace.q[block][:, :, rows], trace.k[block]):
        found += (attention[0] * (wanted[:, rows[part]] @ v.mT)).sum(1)
    return found
