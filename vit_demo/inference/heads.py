"""Results of passes in which something is changed, and what each head is for; methods of ``Exploration``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch

from vit_demo import features, metrics
from vit_demo.checks import whole_number
from vit_demo.errors import InputError
from vit_demo.inference.contributions import Contributions, check_sum, contributions
from vit_demo.inference.patch_features import same_model
from vit_demo.inference.result import Label, Query, Result
from vit_demo.inference.sequence import check_block, check_head, check_patch, class_index, listed, other_class
from vit_demo.inference.smallest_sets import is_predicted
from vit_demo.methods import Progress
from vit_demo.trace.intervention import REPLACEMENTS, Graft, Intervention, Replacement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

R = TypeVar("R", bound=Result)
Unit = Literal["logit", "log_probability"]


def without(
    ex: R,
    heads: Iterable[tuple[int, int]] = (),
    blocks: Iterable[int] = (),
    mlps: Iterable[int] = (),
    replace: Replacement = "zero",
) -> R:
    """The result with some heads, blocks or MLPs silent; everything that a result has is then of that pass.

    Maps of attention still show where a silent head looks. It adds up, as ``drop_patches`` does, and with it.

    Args:
        ex: The result.
        heads: (block, head) of each: its output is replaced before the output projection.
        blocks: Which add nothing to the tokens.
        mlps: Of which blocks only the attention adds something.
        replace: What stands in place of what is silent: ``"zero"``, or ``"mean"``, its mean over the tokens of this
            picture.

    Returns:
        A new result, or this one if all of it was silent before.

    Raises:
        InputError: If there is no such head or block, one is named twice, some are silent in the other way, the tokens
            between the blocks are not seen, or a block does more than to add to them, so that its MLP is not seen.
        PresetError: If what a block adds after attention is not what one linear map gives, of which an MLP is the rest.
    """
    _check_replacement(replace)
    before, depth = ex.intervention, ex.trace.num_blocks // ex.trace.together
    found = {
        "heads": _each_once("head", heads, lambda head: check_place(ex, head)),
        "blocks": _each_once("block", blocks, lambda block: check_block(depth, block) % depth),
        "mlps": _each_once("MLP", mlps, lambda block: check_block(depth, block) % depth),
    }
    merged: dict[str, Any] = {name: tuple(sorted({*getattr(before, name), *new})) for name, new in found.items()}
    after = with_fields(_replacing(ex, replace) if any(found.values()) else before, **merged)
    if after == before:
        return ex
    if set(after.mlps) - set(before.mlps):
        with_fields(ex, intervention=with_fields(after, blocks=(), mlps=())).run(check_sum)
    return ex.again(intervention=after)


def _check_replacement(replace: Any) -> None:
    if replace not in REPLACEMENTS:
        raise InputError(f"There is no replacement {replace!r}: choose {' or '.join(REPLACEMENTS)}.")


def _replacing(ex: Result, replace: Replacement) -> Intervention:
    """What is changed in a result, with this in place of what is silent."""
    _check_replacement(replace)
    if ex.intervention.is_silent and ex.intervention.replace != replace:
        raise InputError(f"Others are silent with replace={ex.intervention.replace!r}: use the same for all.")
    return with_fields(ex.intervention, replace=replace)


def _each_once(what: str, given: Any, check: Any) -> list[Any]:
    """What was given, checked; ``InputError`` at the first that was there before, however it is written."""
    found: list[Any] = []
    try:
        for one in given:
            if (place := check(one)) in found:
                raise InputError(f"The {what} {place} is named twice: name each once.")
            found.append(place)
    except TypeError:
        raise InputError(f"Give a list, such as [(0, 1)] for heads or [0] for blocks, not {given!r:.40}.") from None
    return found


def check_place(ex: Result, place: Any) -> tuple[int, int]:
    """Block and head, from 0; a negative block counts from the end."""
    try:
        block, head = place
    except (TypeError, ValueError):
        message = f"Heads are a list of (block, head), such as [(0, 1)], and {place!r:.40} is no such pair: give one."
        raise InputError(message) from None
    depth = ex.trace.num_blocks
    check_head(ex.trace.num_heads, head)
    return check_block(depth, block) % depth, whole_number(head, "A head")


def with_tokens(ex: R, other: Result, block: int, patches: Iterable[Query] | None = None) -> R:
    """The result with tokens of another one put in before a block (activation patching).

    Args:
        ex: The result.
        other: Another picture, or the same with something changed, in the same network and on the same grid.
        block: From 0; negative from the end.
        patches: (row, col) of those whose tokens are put in, or None for the tokens before the patches, such as the
            class token; all tokens for None alone, after which everything is as in ``other``.

    Raises:
        InputError: If the other result is of another network or grid, there is no such block or patch, it was dropped
            there, or the tokens between the blocks are not seen.
    """
    same_model(ex, other)
    if other.grid != ex.grid or other.patch_size != ex.patch_size:
        raise InputError(f"The other result has a grid of {other.grid}, not {ex.grid}: give both pictures one size.")
    depth, prefix, columns = ex.trace.num_blocks // ex.trace.together, ex.trace.num_prefix_tokens, ex.grid[1]
    number = check_block(depth, block) % depth
    total = prefix + ex.grid[0] * columns
    gone = {prefix + row * columns + col for row, col in other.dropped}
    wanted = set(range(total)) - gone
    if patches is not None:
        named = [patch if patch is None else check_patch(ex.grid, patch) for patch in listed(patches)]
        wanted = {prefix + patch[0] * columns + patch[1] for patch in named if patch is not None}
        wanted |= set(range(prefix)) if None in named else set()
        if lost := sorted(wanted & gone):
            raise InputError(f"The patch {divmod(lost[0] - prefix, columns)} was dropped there, so it has no token.")
    found = other.run(features.block_tokens, number, norm=False)[0]
    there = torch.tensor([place for place in range(total) if place not in gone], device="cpu")
    tokens = found.new_zeros(total, found.shape[1]).index_copy(0, there, found)
    places = torch.tensor([place in wanted for place in range(total)], dtype=torch.bool, device="cpu")
    graft = Graft(number, places, tokens)
    return ex.again(intervention=with_fields(ex.intervention, grafts=(*ex.intervention.grafts, graft)))


def head_effects(
    ex: Result,
    label: Label = None,
    against: Label = None,
    unit: Unit = "logit",
    batch_size: int | None = None,
    progress: Progress | None = None,
    replace: Replacement | None = None,
) -> NDArray[np.float32]:
    """What a class loses when each head alone is silent, beside what is silent already: as many passes as heads.

    Effects do not add up, because heads make up for each other. Nor are they of this class alone: without a head that
    every answer needs the network says something else, which ``without`` shows.

    Args:
        ex: The result.
        label: A label or its index; the predicted class for None.
        against: Another class: what the first loses against this one.
        unit: What is lost: of the ``"logit"``, or of the ``"log_probability"``.
        batch_size: Passes at once; for None as many as fit.
        progress: Called with the passes done and their total.
        replace: As in ``without``; for None as what is silent already, or 0.

    Returns:
        float32 ``[blocks, heads]``, below 0 where the class gains.

    Raises:
        InputError: If there is no such unit or replacement, others are silent in the other way, the network gives no
            probabilities, or ``batch_size`` is below 1.
        LabelError: If there is no such class.
    """
    if unit not in ("logit", "log_probability"):
        raise InputError(f"There is no unit {unit!r}: choose 'logit' or 'log_probability'.")
    if unit == "log_probability" and ex.preset.scores == "none":
        raise InputError(f"{ex.preset.name} gives no probabilities: choose the unit 'logit'.")
    size = None if batch_size is None else whole_number(batch_size, "batch_size", 1)
    target, other = _classes(ex, label, against)
    options: dict[str, Any] = {"against": other, "log": unit != "logit", "batch_size": size, "progress": progress}
    changed = with_fields(ex, intervention=_replacing(ex, ex.intervention.replace if replace is None else replace))
    found: NDArray[np.float32] = changed.run(metrics.head_effects, target, slow=True, **options).numpy()
    return found


def enough_heads(
    ex: Result, label: Label = None, share: float | None = None, progress: Progress | None = None
) -> metrics.HeadSet | None:
    """The fewest heads found that keep a class while all others are silent, as ``enough`` does of patches.

    Args:
        ex: The result.
        label: As in ``head_effects``.
        share: How much of its probability is kept, above 0 and at most 1; None: it stays the predicted class.
        progress: Called with the passes done and the most that may be needed.

    Returns:
        The set, whose ``heads`` are (block, head) of each, most important first; None if all are not enough.

    Raises:
        InputError: If the share is not above 0 and at most 1, or it is None for a class that is not predicted.
        LabelError: If there is no such class.
    """
    target = class_index(ex, label)
    if share is None and not is_predicted(ex, target):
        raise InputError(f"{ex.labels[target]} is not the predicted class: give the share of its probability to keep.")
    return ex.run(metrics.sufficient_heads, target, share=share, slow=True, progress=progress)


def parts_of_logit(ex: Result, label: Label = None, against: Label = None) -> Contributions:
    """What each head, each MLP, the first tokens and the biases add to a logit directly, in one pass.

    What norms divide by is held. A head that works through later blocks adds nothing by itself: for what it
    causes, see ``head_effects``.

    Args:
        ex: The result.
        label: A label or its index; the predicted class for None.
        against: Another class: what each adds to the difference of both logits.

    Returns:
        The parts, whose sum is the logit, or the difference.

    Raises:
        InputError: If the head is more than a norm and linear maps, or a block does more than to add to its tokens.
        LabelError: If there is no such class.
        PresetError: If what a block adds after attention is not what one linear map gives.
    """
    heads, mlps, tokens, bias, patches = ex.run(contributions, *_classes(ex, label, against))
    return Contributions(heads.numpy(), mlps.numpy(), tokens, bias, patches.numpy())


def _classes(ex: Result, label: Label, against: Label) -> tuple[int, int | None]:
    target = class_index(ex, label)
    return target, None if against is None else other_class(ex, target, against)
