"""Maps of batches of inputs, as tensors: every method of the registry on ``[B, C, H, W]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vit_demo.errors import InputError, LabelError, warn
from vit_demo.inference.inputs import is_dense
from vit_demo.inference.sequence import WITHOUT_CLASS, check_block, check_head, check_patch, find_class
from vit_demo.methods import find_method
from vit_demo.methods.chunking import chunk_size
from vit_demo.methods.subsets import BATCH_TOKENS
from vit_demo.trace import TracedViT
from vit_demo.trace.running import in_this_thread

Targets = int | str | Sequence[int | str] | Tensor | NDArray[Any] | Callable[[Tensor], Tensor] | None
"""A class for all images, one for each, or a function from the output ``[B, K]`` to scalars ``[B]``."""


def check_batch(x: Any) -> None:
    """``InputError`` if something is no batch of inputs."""
    if not is_dense(x) or x.dim() != 4 or not x.numel() or not x.is_floating_point():
        raise InputError("The inputs are a float tensor [B, C, H, W], normalised as the network takes them.")
    if not torch.isfinite(x).all():
        raise InputError("Some of the inputs are not finite numbers.")


def maps(
    network: TracedViT,
    labels: Sequence[str],
    x: Tensor,
    method: str,
    targets: Targets,
    against: Targets,
    options: dict[str, Any],
    logits: list[Tensor] | None = None,
) -> Tensor:
    """As ``Explainer.maps``, on a network and the names of its classes; adds the logits to a list that is given."""
    found = find_method(method)
    found.check_options(options)
    if options.get("block") is not None:
        check_block(network.config.depth, options["block"])
    if options.get("head") is not None:
        check_head(network.config.num_heads, options["head"])
    if targets is not None and not found.class_specific:
        warn(WITHOUT_CLASS.format(found.name))
        targets = None
    if against is not None and not found.compares_classes:
        raise InputError(f"{found.name} does not compare two classes: choose another method, or leave against out.")
    if found.class_specific and not network.config.num_classes and not callable(targets):
        raise LabelError("This network has no classes: pass label= as a function of its output, an embedding [B, D].")
    if callable(against) or (callable(targets) and against is not None):
        raise InputError("A function of the logits is compared with nothing: let it subtract what it should.")
    inputs = x.detach().to(network.device)
    chosen = _classes(network, labels, targets, len(x))
    others = _classes(network, labels, against, len(x))
    grid = (x.shape[2] // network.patch_size, x.shape[3] // network.patch_size)
    if options.get("query") is not None:
        row, col = check_patch(grid, options["query"])
        options = {**options, "query": network.config.num_prefix_tokens + row * grid[1] + col}
    tokens = 4 * (network.config.num_prefix_tokens + grid[0] * grid[1])  # a pass that keeps its graph
    # A method of many passes fills its batches with one image; the others take several.
    size = 1 if found.is_slow else chunk_size(BATCH_TOKENS, tokens)
    parts = []
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        arguments = dict(options)
        if others is not None:
            arguments["against"] = _of(others, part, found.is_slow)
        with nullcontext() if logits is None else _keep_output(network, inputs[part], logits):
            values = found.compute(
                network,
                inputs[part],
                _of(chosen, part, found.is_slow),
                patch_size=network.patch_size,
                **arguments,
            )
        parts.append(values.detach().float())
    return torch.cat(parts).to(x.device)


@contextmanager
def _keep_output(network: TracedViT, images: Tensor, outputs: list[Tensor]) -> Iterator[None]:
    """Adds the network's output for some images to a list: of a pass that is made meanwhile, or else of one more."""
    count = len(outputs)

    def keep(_: nn.Module, given: tuple[Any, ...], options: dict[str, Any], output: Tensor) -> None:
        is_whole = options.get("kept_patches") is None and given[0].dtype == images.dtype
        if len(outputs) == count and is_whole and torch.equal(given[0], images):
            outputs.append(output.detach().float())

    hook = network.register_forward_hook(in_this_thread(keep), with_kwargs=True)
    try:
        yield
        if len(outputs) == count:
            with torch.no_grad():
                network(images)
    finally:
        hook.remove()


def _of(classes: Tensor | Callable[[Tensor], Tensor] | None, part: slice, single: bool) -> Any:
    """The classes of some images, as a number where there is one image."""
    if not isinstance(classes, Tensor):
        return classes
    return int(classes[part]) if single else classes[part]


def _classes(
    network: TracedViT, labels: Sequence[str], targets: Targets, count: int
) -> Tensor | Callable[[Tensor], Tensor] | None:
    """The classes as int64 ``[B]``, or the function."""
    if targets is None or (callable(targets) and not isinstance(targets, Tensor)):
        return targets
    targets = getattr(targets, "tolist", lambda: targets)()  # of torch, numpy, pandas
    chosen: list[Any] = list(targets) if isinstance(targets, Sequence) and not isinstance(targets, str) else [targets]
    if len(chosen) not in (1, count):
        raise InputError(f"There are {len(chosen)} labels for {count} images: give one, or one for each.")
    chosen = chosen if len(chosen) == count else chosen * count
    return torch.tensor([find_class(labels, target, "This network") for target in chosen], device=network.device)
