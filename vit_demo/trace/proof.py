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
from vit_demo.trace.attention_mode import AttentionMode, attention_rows, attention_scores
from vit_demo.trace.probe import Probe, is_tokens
from vit_demo.trace.reasons import NOT_OF_TOKENS
from vit_demo.trace.running import hooked
from vit_demo.trace.structure import first_of, input_of, with_input
from vit_demo.trace.trace import Trace
from vit_demo.trace.traced_vit import TracedViT

ROUNDING = 64  # multiple of its numbers' precision by which a network may differ from itself
EXACT = ROUNDING * torch.finfo(torch.float32).eps
"""The same for rows that nothing changed, in any type: the same kernels compute them."""
CHUNK_SCORES = 1 << 23  # scores that are held at once
NOT_UNDERSTOOD = "Attention was seen in this network, but what it gives is not softmax(q k^T) v of what was seen."


@torch.no_grad()
def prove(network: TracedViT, probe: Probe, images: Tensor, logits: Tensor) -> tuple[bool, Tensor]:
    """Makes both tests, in five passes, one of them of two pictures.

    Args:
        network: As ``adapt`` found it.
        probe: What was seen of it.
        images: Noise ``[1, C, height, width]``.
        logits: Its own for this noise, ``[1, K]``.

    Returns:
        Whether the attentions of a block, if it has several, read the same tokens, and what five passes give that
        differ in their picture, token or attention, ``[5, K]``.

    Raises:
        PresetError: If one fails, with what was seen.
    """
    alone, rows = _check_isolation(network, probe, images)
    rounding = _rounding(network.dtype, alone.v[0].dtype)
    queries, found = _check_replacement(network, images, logits, rounding)
    count = max(1, network.config.depth // len(network.structure.blocks))
    if alone.q[0].shape != queries[0][:1].shape or _differ(alone.q[0], queries[0][:1]) > 16 * rounding:
        raise PresetError(NOT_UNDERSTOOD)
    _check_tokens(network, images, logits, rounding)
    differences = [_differ(x, y[:1]) for x, y in zip(alone.q[:count], queries[:count], strict=True)]
    is_parallel = max(differences) <= rounding
    if is_parallel and count > 1 and network.config.num_heads == 1:
        raise PresetError("The heads of this network are modules of their own: compute them in one attention.")
    return is_parallel, torch.cat([found, *rows])


def _check_tokens(network: TracedViT, images: Tensor, logits: Tensor, rounding: float) -> None:
    """What the last block returns must be what the head reads, and no block may change its input in place."""
    trace = Trace(record_tokens=True)
    network(images, trace)
    places = [x.data_ptr() for x in trace.tokens if x.data_ptr()]  # 0 on devices without addresses
    if len(set(places)) < len(places):
        raise PresetError(
            "A block of this network changes its tokens in place (x += ...), or is none (nn.Identity): write "
            "x = x + ... instead, or take it out."
        )
    if network.shows_tokens and _differ(network.forward_head(trace.tokens[-1]), logits) > 16 * rounding:
        raise PresetError(
            "What the last block of this network returns is not what its head reads: put both in a module."
        )


def _check_isolation(network: TracedViT, probe: Probe, images: Tensor) -> tuple[Trace, list[Tensor]]:
    """Changes half of the patches; in another pass a patch's token and one of the prefix, where there are tokens first.

    Returns what a pass without attention leaves, and what each of the three gives.
    """
    other, index = _other(network, images)
    plain, end, *rows = _pass_alone(network, probe, images)
    changed, end_of_changed, row = _pass_alone(network, probe, other)
    if plain.tokens[0].shape != end.shape:  # a token was added in between
        raise PresetError(_what_was_seen(probe, network))
    at_entry, at_end = _moved(plain.tokens[0], changed.tokens[0]), _moved(end, end_of_changed)
    tokens = [index, *([0] if network.config.num_prefix_tokens else [])]  # of a patch, and of no patch
    again, end_of_again, last = _pass_alone(network, probe, images, tokens)
    at_end_again = _moved(end, end_of_again)
    leaks = torch.cat([at_end[at_entry == 0], _without(at_end_again, tokens)])
    if leaks.max() > EXACT * max(at_end.max(), at_end_again.max()):
        raise PresetError(_what_was_seen(probe, network))
    _check_between_tokens(plain, again, tokens)
    return plain, [*rows, row, last]


def _check_between_tokens(plain: Trace, again: Trace, tokens: list[int]) -> None:
    """Each token must have a value, a row and a column of its own; channels or entries of a codebook have not.

    ``plain`` is what a pass without attention leaves, ``again`` what it does with ``tokens`` changed, first a patch's.
    """
    for before, after in zip(plain.v, again.v, strict=True):
        moved = _moved(before.transpose(1, 2).flatten(2), after.transpose(1, 2).flatten(2))
        if not moved[tokens[0]] or _without(moved, tokens).max() > EXACT * moved.max():
            raise PresetError(NOT_OF_TOKENS)
    own = slice(tokens[0], tokens[0] + 1)
    for q, q_again, k, k_again in zip(plain.q, again.q, plain.k, again.k, strict=True):
        parts = zip(q.split(1, 1), k.split(1, 1), strict=True)  # whole matrices of all heads may be gigabytes
        least = 1e-6 * max(float(attention_scores(*part).abs().max()) for part in parts)
        row = attention_scores(q[:, :, own], k) - attention_scores(q_again[:, :, own], k_again)
        column = attention_scores(q, k[:, :, own]) - attention_scores(q_again, k_again[:, :, own])
        in_row, in_column = (each[0].abs().amax(0).flatten().cpu() > least for each in (row, column))  # [N]
        if _without(in_column, tokens).any() and not _without(in_row, tokens).any():
            raise PresetError(NOT_OF_TOKENS)


def _moved(x: Tensor, y: Tensor) -> Tensor:
    """The change of each token of the first picture, ``[N]``, between two ``[B, N, D]``."""
    return (x - y)[0].float().abs().amax(1).cpu()


def _without(values: Tensor, tokens: list[int]) -> Tensor:
    """Values ``[N]`` with 0 at some tokens."""
    rest = values.clone()
    rest[tokens] = 0
    return rest


def _other(network: TracedViT, images: Tensor) -> tuple[Tensor, int]:
    """The picture with other noise on the left half of its patches, and the token of the last of these."""
    p, other = network.patch_size, images.clone()
    rows, cols = images.shape[2] // p, images.shape[3] // p
    half = (cols + 1) // 2
    other[..., : half * p] = 1 - images[..., : half * p].flip(2)
    return other, network.config.num_prefix_tokens + (rows - 1) * cols + half - 1


def _pass_alone(
    network: TracedViT, probe: Probe, images: Tensor, changed: list[int] | None = None
) -> tuple[Trace, Tensor, Tensor]:
    """A pass in which attention is the identity, the tokens ``[1, N, D]`` that are returned last, and its logits.

    ``changed`` is the index of a token to change at the first such place.
    """
    trace, found, structure = Trace(record_tokens=True), list[Tensor](), network.structure
    first, last = probe.ends(first_of(probe.tokens[structure.exit][1]))
    is_due = changed is not None

    def change(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal is_due
        if not is_due:
            return None
        is_due = False
        given = input_of(args, kwargs)
        x = structure.unpack(given)
        added = torch.zeros(x.shape[1:])
        added[changed] = torch.randn((len(changed or ()), x.shape[2]), generator=torch.Generator().manual_seed(2))
        x = x + added.to(x)
        return with_input(args, kwargs, structure.pack(x, given))

    def keep(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if is_tokens(output):  # a norm may run again, on the pooled vector
            found[:] = [structure.unpack(output)]

    find = network.module.get_submodule
    with hooked([find(first)], enter=change), hooked([find(last)], leave=keep):
        logits = network(images, trace, attention_fn=lambda q, k, v: v)
    return trace, found[0], logits


class _Again(AttentionMode):
    """Computes attention from what would be recorded, and notes by how much it differs from the network's own."""

    def __init__(self, batch: int) -> None:
        super().__init__(batch)
        self.queries, self.largest = list[Tensor](), 0.0

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        if q.shape[2] == k.shape[2]:
            self.queries.append(q)
        own, few = compute(None), max(1, CHUNK_SCORES // (k.shape[:3].numel()))
        again = torch.cat([attention_rows(some, k) @ v.float() for some in q.split(few, 2)], 2)
        self.largest = max(self.largest, _differ(own, again) if len(q) == self.batch else float("inf"))
        return again.to(own.dtype)


def _check_replacement(
    network: TracedViT, images: Tensor, logits: Tensor, rounding: float
) -> tuple[list[Tensor], Tensor]:
    """Two pictures at once, so that a batch cannot be taken for heads; each attention's queries, and the logits."""
    with _Again(2) as again:
        found = network(torch.cat([images, images.flip(3)]))
    if max(again.largest, _differ(found[:1], logits)) > 16 * rounding:
        raise PresetError(NOT_UNDERSTOOD)
    return [network.structure.prefix_first(q, 2) for q in again.queries], found


def _differ(x: Tensor, y: Tensor) -> float:
    """The largest difference, as a share of the largest value; infinite if one is not a number."""
    difference = (x.float() - y.float()).abs().max() / y.float().abs().max().clamp_min(1e-12)
    return float(difference.nan_to_num(float("inf")))


def _rounding(*dtypes: torch.dtype) -> float:
    """Maps are float32, so no network is held to more; of the coarsest of some types, a tenth is the most."""
    eps = max(torch.finfo(dtype).eps for dtype in (torch.float32, *dtypes))
    return min(ROUNDING * eps, 0.1 / 16)


def _what_was_seen(probe: Probe, network: TracedViT) -> str:
    """The sentence about a network whose tokens are mixed by something else."""
    blocks = network.structure.blocks
    seen = sum(any(f"{path}.".startswith(f"{block}.") for path in probe.paths) for block in blocks)
    what = f"in {seen} of {len(blocks)} blocks" if seen < len(blocks) else f"in all {seen} blocks"
    return (
        f"Attention was seen {what} of this network, but something else mixes its tokens, too, so maps would be wrong: "
        "convolutions between tokens, or attention that is not a softmax times values."
    )
