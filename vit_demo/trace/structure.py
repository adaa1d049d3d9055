"""What a network is made of, seen while it runs once: its blocks, its tokens, and which of them its head reads."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.trace.attention_mode import AttentionMode
from vit_demo.trace.outputs import Already, Path, Sources
from vit_demo.trace.reasons import NO_PATCHES, OTHER_COUNT, why_no_squares
from vit_demo.trace.running import in_this_thread

LISTS = (nn.ModuleList, nn.Sequential)


@dataclass(frozen=True)
class Structure:
    """Where the parts of a network are, by the names of its modules and parameters.

    Attributes:
        blocks: The blocks with attention, in their order.
        entry: The module that the tokens enter first.
        exit: The module that they leave last.
        norm: The module that normalizes them then; empty if none does.
        projections: The weight of the output projection of each attention; empty where what is added to the tokens is
            not what one linear map gives.
        container: What a block returns its tokens in, if it does not return them alone: an empty tuple or list.
        sequence_first: Whether tokens are ``[N, B, D]``, not ``[B, N, D]``.
        before: Tokens before the patches.
        suffix: Tokens after the patches, such as registers; they are counted among the prefix tokens, as the last.
        parallel: Whether the attentions of a block, if it has several, read the same tokens.
        overlaps: Whether tokens see more than their squares.
        size: Height and width of the pictures that the network was found with, if they are no square.
        drops: Whether patches can be left out of the sequence; not if the head needs a token for each.
        leaves_out: Whether a pass without the tokens of some patches gives what masking them gives.
        takes_any_size: Whether pictures may have other sides than those that the network was found with.
        has_head: Whether the outputs are those of a classifier; an embedding otherwise.
        output: Where the logits are in what the network returns; see ``outputs.find_logits``.
        already: What made them probabilities, if anything did.
        scale: Of the pixels of a network that normalises by itself; see ``pixels.scale_of``.
    """

    blocks: tuple[str, ...]
    entry: str
    exit: str
    norm: str = ""
    projections: tuple[str, ...] = ()
    container: tuple[Any, ...] | list[Any] | None = None
    sequence_first: bool = False
    before: int = 0
    suffix: int = 0
    parallel: bool = True
    overlaps: bool = False
    size: tuple[int, int] | None = None
    drops: bool = True
    leaves_out: bool = True
    takes_any_size: bool = True
    has_head: bool = True
    output: Path | Callable[[Any], Tensor] = ()
    already: Already = ""
    scale: float | None = 0

    @property
    def shows_tokens(self) -> bool:
        """Whether the tokens between the blocks are seen: each block is a module that gets and returns them."""
        return self.entry == self.blocks[0] and self.exit == self.blocks[-1]

    def unpack(self, output: Any) -> Tensor:
        """The tokens ``[B, N, D]``, prefix first, in what a block gets or returns."""
        x = output[0] if isinstance(output, tuple | list) else output
        return self.prefix_first(x.transpose(0, 1) if self.sequence_first else x, 1)

    def pack(self, x: Tensor, like: Any) -> Any:
        """The opposite of ``unpack``, in place of the tokens in ``like``."""
        x = self.own_order(x, 1)
        x = x.transpose(0, 1) if self.sequence_first else x
        if hasattr(like, "_fields"):  # a named tuple
            return type(like)(x, *like[1:])
        return type(like)((x, *like[1:])) if isinstance(like, tuple | list) else x

    def prefix_first(self, x: Tensor, axis: int) -> Tensor:
        """Tokens in the network's order with those after the patches before them."""
        return self._rolled(x, axis, self.suffix)

    def own_order(self, x: Tensor, axis: int) -> Tensor:
        """The opposite."""
        return self._rolled(x, axis, -self.suffix)

    def _rolled(self, x: Tensor, axis: int, by: int) -> Tensor:
        if not by or x.shape[axis] == 1:
            return x
        first, rest = x.split([self.before, x.shape[axis] - self.before], axis)
        return torch.cat([first, rest.roll(by, axis)], axis)


def input_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first argument of a module: its tokens, alone or in a list."""
    return args[0] if args else next(iter(kwargs.values()), None)


def with_input(args: tuple[Any, ...], kwargs: dict[str, Any], x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a module with another first one."""
    return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, next(iter(kwargs)): x})


class Probe(AttentionMode):
    """One pass of a network on one picture, with the module in which each attention happened.

    Attributes:
        paths: Of the modules that called each self-attention, outermost first.
        shapes: Of the values, ``[B, H, N, e]``.
        attended: Of each self-attention, how many modules had ``started``, which of them it is in, and its output.
        projections: The name of the weight of the first linear map after each, if its shape fits.
        started: The name of each module that got tokens, in their order, and these tokens.
        tokens: What each module got and returned, if these are tokens: of three axes, or lists of such.
        calls: How many times each module ran.
        last: The name of the last module with a matrix of weights that ran.
        sources: From which linear maps each tensor came.
        adds_to_scores: Whether something is added to the scores, such as relative positions.
        pools: How many times one query attended to all tokens (attention pooling).
        others: The numbers of queries and keys of every attention where these differ.
    """

    def __init__(self) -> None:
        super().__init__(batch=1)
        self.paths, self.shapes, self._stack = list[str](), list[torch.Size](), list[str]()
        self.projections, self._names = dict[int, str](), dict[int, str]()
        self.tokens, self.modules = dict[str, tuple[Any, Any]](), dict[str, nn.Module]()
        self.calls = Counter[str]()
        self.attended = list[tuple[int, tuple[str, ...], Tensor]]()
        self.started = list[tuple[str, Any]]()
        self.adds_to_scores, self.pools, self.others = False, 0, list[tuple[int, int]]()
        self.last, self.sources = "", Sources()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        result = super().__torch_function__(func, types, args, kwargs)
        self.sources.note(func, [*args, *(kwargs or {}).values()], result, self._stack[-1] if self._stack else "")
        return result

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        """Notes where it happens."""
        if q.shape[2] == k.shape[2]:
            self.paths.append(self._stack[-1] if self._stack else "")
            self.shapes.append(v.shape)
            self.adds_to_scores |= self.has_mask
            self.attended.append((len(self.started), tuple(self._stack), out := compute(None)))
            return out
        if q.shape[2] == 1:
            self.pools += 1
        else:
            self.others.append((q.shape[2], k.shape[2]))
        return compute(None)

    def project(self, weight: Tensor) -> None:
        """Notes the output projection of the last self-attention."""
        if self.shapes and weight.shape[1] == self.shapes[-1][1] * self.shapes[-1][3]:
            self.projections.setdefault(len(self.shapes) - 1, self._names.get(id(weight), ""))

    def ends_in_head(self, logits: Tensor, end: str) -> bool:
        """Whether a linear map after module ``end`` gave logits: no projection, and not in a headless network.

        What follows it may scale them (a temperature, batch normalization).
        """
        found = self.sources.module_of(logits)
        path = self.last if found is None or found == "" else found
        *around, name = path.split(".")
        parts = [self.modules[".".join(around[:i])] for i in range(len(around) + 1)]
        last, count = self.modules[path], logits.shape[-1]
        sizes = [weight.shape for weight in last.parameters() if weight.dim() > 1]
        if (
            f"{path}.".startswith(f"{end}.")
            or re.search("proj|embed|pooler", ".".join([*around[-1:], name]))
            or any(getattr(part, "num_classes", None) == 0 for part in parts)
        ):
            return False
        return getattr(last, "out_features", None) == count or any(count in size for size in sizes)

    def norm_after(self, end: str) -> str:
        """The name of the module that normalizes what another returned; empty if none does."""
        last = _first(self.tokens[end][1])
        after = [name for name, (x, _) in self.tokens.items() if _first(x) is last]
        return next((name for name in after if "Norm" in type(self.modules[name]).__name__), "")

    def ends(self, like: Tensor) -> tuple[str, str]:
        """The names of the modules that get tokens of this shape first, and return them last."""
        fits = [name for name, (x, _) in self.tokens.items() if _first(x).shape == like.shape]  # in the order of ends
        started = next(name for name, x in self.started if name in fits and _first(x).shape == like.shape)
        return started, fits[-1]

    @contextmanager
    def watching(self, module: nn.Module) -> Iterator[None]:
        """Follows which module runs, in this thread."""
        self.modules = dict(module.named_modules())
        self._names = {id(parameter): name for name, parameter in module.named_parameters()}

        def enter(name: str, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._stack.append(name)
            self.calls[name] += 1
            if is_tokens(x := input_of(args, kwargs)):
                self.started.append((name, x))

        def leave(name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            self._stack.pop()
            weights, parts = module.parameters(recurse=False), next(module.children(), None)
            if hasattr(module, "out_features") or (parts is None and any(weight.dim() > 1 for weight in weights)):
                self.last = name
            x = input_of(args, kwargs)
            if is_tokens(x) and is_tokens(output) and _first(x).shape == _first(output).shape:
                self.tokens.pop(name, None)
                self.tokens[name] = x, output

        handles = []
        for name, one in self.modules.items():
            handles += [
                one.register_forward_pre_hook(in_this_thread(partial(enter, name)), with_kwargs=True),
                one.register_forward_hook(in_this_thread(partial(leave, name)), with_kwargs=True),
            ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _first(x: Any) -> Any:
    return x[0] if isinstance(x, tuple | list) and x else x


def is_tokens(x: Any) -> bool:
    """Whether a module got or returned tokens, alone or first in a list."""
    return isinstance(_first(x), Tensor) and _first(x).dim() == 3


def find_blocks(probe: Probe) -> tuple[list[str], str, str]:
    """The names of the blocks, and of the modules that the tokens enter first and leave last.

    The blocks are the children of the module that all attention has in common.

    Raises:
        PresetError: If no module gets and returns tokens.
    """
    parts = [path.split(".") for path in probe.paths]
    common = 0
    while all(len(path) > common + 1 and path[common] == parts[0][common] for path in parts):
        common += 1
    if len(set(probe.paths)) == 1:  # one block: the outermost list of modules holds it
        lists = (i for i in range(len(parts[0])) if isinstance(probe.modules[".".join(parts[0][:i])], LISTS))
        common = next(lists, common)
    container = ".".join(parts[0][:common])
    blocks = list(dict.fromkeys(".".join(path[: common + 1]) for path in parts))
    if isinstance(probe.modules[container], LISTS):
        # Between blocks with attention there may be others.
        children = [f"{container}.{name}".strip(".") for name, _ in probe.modules[container].named_children()]
        if all(child in probe.tokens for child in children):
            blocks = children
    if all(block in probe.tokens for block in blocks):
        return blocks, blocks[0], blocks[-1]
    while container not in probe.tokens:
        if not container:
            raise PresetError("The tokens of this network were not found: its blocks must get and return [B, N, D].")
        container = container.rpartition(".")[0]
    return blocks, container, container


def find_patch_size(module: nn.Module, size: tuple[int, int], num_tokens: int) -> int:
    """The side of the patches: that of the first convolution whose stride is its kernel, else from the tokens.

    ``PresetError`` if no number of tokens before the patches leaves as many as patches tile a picture of this size.
    """
    height, width = size
    otherwise = NO_PATCHES
    for one in module.modules():
        if isinstance(one, nn.Conv2d) and one.kernel_size == one.stride and one.kernel_size[0] > 1:
            side = one.kernel_size[0]
            if side != one.kernel_size[1]:
                break
            if (height // side) * (width // side) <= num_tokens:
                return side
            otherwise = OTHER_COUNT.format(side, num_tokens)
    sides = [side for side in range(1, min(size) + 1) if not (height % side or width % side)]
    for prefix in range(min(num_tokens, 18)):
        for side in sides:
            if (height // side) * (width // side) == num_tokens - prefix:
                return side
    raise PresetError(why_no_squares(module, otherwise))
