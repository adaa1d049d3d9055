"""Two tests on noise that decide whether a network is accepted: was all of its attention seen, and was it understood?

- Isolation: with every recorded attention replaced by the identity, ``softmax(q k^T) v`` by ``v``, no token may learn
  of another. If one does, something mixes tokens that was not recorded.
- Replacement: with every recorded attention computed again from q, k, v, mask and scale, each result, and the logits,
  are the network's own. So their layout, mask and scale were understood.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.trace.attention_mode import AttentionMode, attention_rows
from vit_demo.trace.recording import Recording
from vit_demo.trace.structure import Probe, in_this_thread, input_of, with_input
from vit_demo.trace.traced_vit import TracedViT

ROUNDING = 64
"""By how many times the precision of its numbers a network may differ from itself."""
NOT_IN_ORDER = "The tokens of this network are not in the order of its patches, row by row, so maps would be wrong."


@torch.no_grad()
def prove(network: TracedViT, probe: Probe, images: Tensor, logits: Tensor) -> tuple[int, bool]:
    """Makes both tests, in four passes, one of them of two pictures.

    Args:
        network: As ``adapt`` found it, prefix tokens first.
        probe: What was seen of it.
        images: Noise ``[1, C, height, width]``.
        logits: Its own for this noise, ``[1, K]``.

    Returns:
        How many of the prefix tokens stand after the patches, and whether the attentions of a block, if it has several,
        read the same tokens.

    Raises:
        PresetError: If one fails, with what was seen.
    """
    alone, suffix = _check_isolation(network, probe, images)
    queries = _check_replacement(network, images, logits)
    count = max(1, network.config.depth // len(network.structure.blocks))
    differences = [_differ(x, y[:1]) for x, y in zip(alone.q[:count], queries[:count], strict=True)]
    return suffix, max(differences) <= _rounding(network)


def _check_isolation(network: TracedViT, probe: Probe, images: Tensor) -> tuple[Recording, int]:
    """Changes one patch of the picture, and in another pass one token at the first place where there are tokens."""
    other, index = _other(network, images)
    plain, end = _pass_alone(network, probe, images)
    changed, changed_end = _pass_alone(network, probe, other)
    if plain.tokens[0].shape != end.shape:  # a token was added in between
        raise PresetError(_what_was_seen(probe, network))
    at_entry = (plain.tokens[0] - changed.tokens[0])[0].float().abs().amax(1)  # [N]
    found = int(at_entry.argmax())
    _, other_end = _pass_alone(network, probe, images, found)
    at_end, at_other_end = ((end - x)[0].float().abs().amax(1) for x in (changed_end, other_end))
    leaks = torch.cat([at_end[at_entry == 0], at_other_end[:found], at_other_end[found + 1 :]])
    if leaks.max() > _rounding(network) * max(at_end.max(), at_other_end.max()):
        raise PresetError(_what_was_seen(probe, network))
    if found not in (index, index - network.config.num_prefix_tokens):
        raise PresetError(NOT_IN_ORDER)
    return plain, index - found


def _other(network: TracedViT, images: Tensor) -> tuple[Tensor, int]:
    """The same picture with another patch, and the index of its token."""
    p, (height, width) = network.patch_size, images.shape[2:]
    row, col = (height // p) // 3, (width // p) - 1  # transposed, it would be another
    other = images.clone()
    part = other[:, :, row * p : (row + 1) * p, col * p : (col + 1) * p]
    part += torch.randn(part.shape, generator=torch.Generator().manual_seed(1)).to(part)
    return other, network.config.num_prefix_tokens + row * (width // p) + col


def _pass_alone(
    network: TracedViT, probe: Probe, images: Tensor, changed: int | None = None
) -> tuple[Recording, Tensor]:
    """A pass in which attention is the identity, and the tokens ``[1, N, D]`` at the last place where there are any.

    ``changed`` is the index of a token to change at the first such place.
    """
    recording, found, structure = Recording(record_tokens=True), list[Tensor](), network.structure
    like = probe.tokens[structure.exit][1]
    first, last = probe.ends(like[0] if isinstance(like, tuple | list) else like)
    is_due = changed is not None

    def change(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal is_due
        if not is_due:
            return None
        is_due = False
        given = input_of(args, kwargs)
        x = structure.unpack(given).clone()
        x[:, changed] += torch.randn(x.shape[2], generator=torch.Generator().manual_seed(2)).to(x)
        return with_input(args, kwargs, structure.pack(x, given))

    def keep(_: nn.Module, args: Any, output: Any) -> None:
        found[:] = [structure.unpack(output)]

    modules = network.module.get_submodule(first), network.module.get_submodule(last)
    handles = [
        modules[0].register_forward_pre_hook(in_this_thread(change), with_kwargs=True),
        modules[1].register_forward_hook(in_this_thread(keep)),
    ]
    try:
        network(images, recording, attention_fn=lambda q, k, v: v)
    finally:
        for handle in handles:
            handle.remove()
    return recording, found[0]


class _Again(AttentionMode):
    """Computes attention from what would be recorded, and notes by how much it differs from the network's own."""

    def __init__(self, batch: int) -> None:
        super().__init__(batch)
        self.queries, self.largest = list[Tensor](), 0.0

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        if q.shape[2] == k.shape[2]:
            self.queries.append(q)
        own, again = compute(None), attention_rows(q, k) @ v.float()
        self.largest = max(self.largest, _differ(own, again) if len(q) == self.batch else 1.0)
        return again.to(own.dtype)


def _check_replacement(network: TracedViT, images: Tensor, logits: Tensor) -> list[Tensor]:
    """Two pictures at once, so that a batch cannot be taken for heads; returns the queries of each attention."""
    with _Again(2) as again:
        found = network(torch.cat([images, images.flip(3)]))
    if max(again.largest, _differ(found[:1], logits)) > 16 * _rounding(network):
        raise PresetError(
            "Attention was seen in this network, but what it gives is not softmax(q k^T) v of what was seen."
        )
    return again.queries


def _differ(x: Tensor, y: Tensor) -> float:
    """The largest difference, as a share of the largest value; infinite if one is not a number."""
    difference = (x.float() - y.float()).abs().max() / y.float().abs().max().clamp_min(1e-12)
    return float(difference.nan_to_num(float("inf")))


def _rounding(network: TracedViT) -> float:
    return ROUNDING * torch.finfo(network.dtype).eps


def _what_was_seen(probe: Probe, network: TracedViT) -> str:
    """The sentence about a network whose tokens are mixed by something else."""
    blocks = network.structure.blocks
    seen = sum(any(f"{path}.".startswith(f"{block}.") for path in probe.paths) for block in blocks)
    what = f"in {seen} of {len(blocks)} blocks" if seen < len(blocks) else f"in all {seen} blocks"
    return (
        f"Attention was seen {what} of this network, but something else mixes its tokens, too, so maps would be wrong: "
        "convolutions between tokens, or attention that is not a softmax times values."
    )
