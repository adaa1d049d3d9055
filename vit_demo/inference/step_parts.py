"""The parts of a network that the guided tour shows, found in any network by the numbers at its modules.

Nothing is assumed of a module's class or name where its numbers say what it is, so that no number shown is of another
part than the page says. What cannot be told is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model.vit import PatchEmbed
from vit_demo.trace import Trace, TracedViT
from vit_demo.trace.running import hooked

Numbers = dict[str, Tensor]

ROUNDING = 16  # units in the last place by which equal sums may differ


class Event(NamedTuple):
    """One token ``[D]`` as it enters a module, or leaves it."""

    module: nn.Module
    enters: bool
    x: Tensor


class Entry(NamedTuple):
    """How the tokens of one pass came to be.

    Attributes:
        output: What the network returned, ``[1, K]``.
        embedding: The module that makes a token of each patch; None if none is seen.
        embedded: What it made, ``[rows * cols, D]``.
        sums: The tokens of all patches, ``[rows * cols, D]``, as they entered the modules that followed; the last is
            the first block.
    """

    output: Tensor
    embedding: nn.Module | None
    embedded: Tensor | None
    sums: list[Tensor]


@contextmanager
def watch(modules: Iterable[nn.Module], note: Callable[[nn.Module, bool, Tensor], None]) -> Iterator[None]:
    """Calls ``note(module, enters, x)``, in this thread, with the first tensor that enters or leaves each module."""

    def see(module: nn.Module, enters: bool, values: Iterable[Any]) -> None:
        x = next((value for value in values if isinstance(value, Tensor)), None)
        if x is not None:
            note(module, enters, x)

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        see(module, True, (*args, *kwargs.values()))

    def leave(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        see(module, False, output if isinstance(output, tuple) else (output,))

    with hooked(modules, enter, leave):
        yield


@contextmanager
def watch_block(model: TracedViT, block: int, index: int, recording: Trace) -> Iterator[list[Event]]:
    """The events of one token, the ``index``-th of the sequence, in a block from its attention on."""
    events = list[Event]()

    def note(module: nn.Module, enters: bool, x: Tensor) -> None:
        is_here = len(recording.tokens) == block + 1 and len(recording.q) == block + 1
        if is_here and x.dim() == 3 and x.shape[1] > index:
            events.append(Event(module, enters, x[0, index].clone()))  # whose memory the network may write to

    _, *modules = model.blocks[block].modules()
    with watch(modules, note):
        yield events


def branches(events: list[Event], before: Tensor, after: Tensor) -> tuple[Numbers, bool]:
    """What attention and the MLP add to a token ``[D]`` between its block's start and end, each if it is seen.

    What enters a module is the token between the two if it is exactly the token before plus what left a module since
    the attention. There is none in blocks whose MLP works beside attention.

    Returns:
        ``attention``, ``between``, ``mlp`` ``[D]`` and ``hidden``, which the MLP's last linear map reads; and whether
        more numbers than these come out of the linear maps before it, since they are multiplied with each other.
    """
    for number, (_, enters, between) in enumerate(events):
        attention = _added(events[:number], before, between) if enters else None
        if attention is not None:
            break
    else:
        return {}, False
    found = {"attention": attention, "between": between}
    rest = events[number:]
    if (mlp := _added(rest, between, after)) is not None:
        found["mlp"] = mlp
    inputs = [event.x for event in rest if event.enters and isinstance(event.module, nn.Linear)]
    outputs = [event.x for event in rest if not event.enters and isinstance(event.module, nn.Linear)]
    if not outputs or outputs[-1].shape != before.shape:
        return found, False
    return found | {"hidden": inputs[-1]}, sum(map(len, outputs[:-1])) > len(inputs[-1])


def _added(events: list[Event], before: Tensor, after: Tensor) -> Tensor | None:
    """What left a module and is exactly what a token gained."""
    left = (x for _, enters, x in events if not enters and x.shape == before.shape == after.shape)
    return next((x for x in left if torch.equal(before + x, after)), None)


def enter(
    model: TracedViT, pixels: Tensor, recording: Trace, *, patch_size: int, kept_patches: Tensor | None = None
) -> Entry:
    """Runs a network, watched until its first block starts; ``recording`` records the tokens."""
    grid = grid_of(pixels, patch_size)
    num_patches, prefix = grid[0] * grid[1], model.config.num_prefix_tokens
    made, sums = list[tuple[nn.Module, Tensor]](), list[Tensor]()

    def note(module: nn.Module, enters: bool, x: Tensor) -> None:
        if recording.tokens:  # the first block has started
            return
        if enters and x.dim() == 3 and x.shape[1] == prefix + num_patches:
            sums.append(x[0, prefix:])
        elif not enters and isinstance(module, (PatchEmbed, nn.Conv2d, nn.Linear)):
            x = x.flatten(2).mT if x.shape[2:] == grid else x
            if x.dim() == 3 and x.shape[1] == num_patches:
                made.append((module, x[0].clone()))

    inside = {part for block in model.blocks for part in list(block.modules())[1:]}
    with watch([part for part in model.module.modules() if part not in inside], note):
        output = model(pixels, recording, patch_size=patch_size, kept_patches=kept_patches)
    width = recording.tokens[0].shape[2]
    embedding, embedded = next(((module, x) for module, x in made if x.shape[1] == width), (None, None))
    return Entry(output, embedding, embedded, [x for x in sums if x.shape[1] == width])


def positions(model: TracedViT, entry: Entry, pixels: Tensor, patch_size: int) -> tuple[str, Tensor | None]:
    """What is added to the token of each patch for its place, whatever the picture.

    Returns:
        How: ``"learned"`` or ``"sincos"`` in networks of this package, ``"added"`` in others, ``"normed"`` if the sum
        is changed before the first block, ``"none"`` if nothing is added, ``"unseen"`` if that cannot be told; and the
        vectors ``[rows * cols, D]``, if there are any.
    """
    if (known := model.positions(grid_of(pixels, patch_size))) is not None:
        return known
    noise = torch.randn(pixels.shape, generator=torch.Generator().manual_seed(0)).to(pixels)
    other = enter(model, noise, Trace(record_tokens=True), patch_size=patch_size)
    if entry.embedded is None or other.embedded is None or len(entry.sums) != len(other.sums):
        return "unseen", None
    for how, (here, there) in enumerate(zip(reversed(entry.sums), reversed(other.sums), strict=True)):
        tolerance = ROUNDING * torch.finfo(here.dtype).eps * torch.maximum(here.abs().max(), there.abs().max())
        added = here - entry.embedded
        if (added - (there - other.embedded)).abs().max() > tolerance:
            continue
        if added.abs().max() > tolerance:
            return "added" if torch.equal(here, entry.sums[-1]) else "normed", added
        if not how:
            return "none", None
    return "unseen", None


def filters(model: TracedViT, entry: Entry, pixels: Tensor, patch_size: int) -> tuple[Tensor, Tensor] | None:
    """The filters ``[D, C, p, p]`` and biases ``[D]`` that turn each patch into its token, if these do."""
    embedding, known = entry.embedding, model.filters(patch_size)
    if known is None:
        shape = (pixels.shape[1], patch_size, patch_size)
        if not isinstance(embedding, nn.Conv2d) or embedding.weight.shape[1:] != shape:
            return None
        known = embedding.weight, embedding.bias
    kernel, bias = known
    bias = kernel.new_zeros(len(kernel)) if bias is None else bias
    made = F.conv2d(pixels.to(kernel.dtype), kernel, bias, stride=patch_size)[0].flatten(1).T
    assert entry.embedded is not None
    is_close = torch.allclose(made, entry.embedded, rtol=1e-2, atol=1e-3 * float(made.abs().max()))
    return (kernel, bias) if is_close else None


def grid_of(pixels: Tensor, patch_size: int) -> tuple[int, int]:
    """Rows and columns of patches."""
    return pixels.shape[2] // patch_size, pixels.shape[3] // patch_size
