"""One pass of a network, seen while it runs: its blocks, its tokens, and where its attention is."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.trace.attention_mode import AttentionMode
from vit_demo.trace.outputs import Sources
from vit_demo.trace.reasons import CHUNKS, HIERARCHICAL, MORE_KEYS, NO_PATCHES, OTHER_COUNT, SLOTS, why_no_squares
from vit_demo.trace.running import DETACH, hooked
from vit_demo.trace.structure import first_of, input_of

LISTS = (nn.ModuleList, nn.Sequential)


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
        sets_gradients: Whether gradients were turned on or off within the network, or something was detached.
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
        self.sets_gradients = False
        self.adds_to_scores, self.pools, self.others = False, 0, list[tuple[int, int]]()
        self.last, self.sources = "", Sources()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        self.sets_gradients |= func is torch._C._set_grad_enabled or func in DETACH
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
        if self.shapes and weight.dim() == 2 and weight.shape[1] == self.shapes[-1][1] * self.shapes[-1][3]:
            self.projections.setdefault(len(self.shapes) - 1, self._names.get(id(weight), ""))

    def ends_in_head(self, logits: Tensor, end: str) -> bool:
        """Whether a linear map after module ``end`` gave logits: no projection, and not in a headless network.

        What follows it may scale them (a temperature, batch normalization).
        """
        path = self.sources.module_of(logits) or self.last
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
        last = first_of(self.tokens[end][1])
        after = [name for name, (x, _) in self.tokens.items() if first_of(x) is last]
        return next((name for name in after if "Norm" in type(self.modules[name]).__name__), "")

    def ends(self, like: Tensor) -> tuple[str, str]:
        """The names of the modules that get tokens of this shape first, and return them last."""
        fits = [name for name, (x, _) in self.tokens.items() if first_of(x).shape == like.shape]  # in the order of ends
        started = next(name for name, x in self.started if name in fits and first_of(x).shape == like.shape)
        return started, fits[-1]

    @contextmanager
    def watching(self, module: nn.Module) -> Iterator[None]:
        """Follows which module runs, in this thread."""
        self.modules = dict(module.named_modules())
        self._names = {id(parameter): name for name, parameter in module.named_parameters()}
        names = {id(one): name for name, one in self.modules.items()}

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._stack.append(name := names[id(module)])
            self.calls[name] += 1
            if is_tokens(x := input_of(args, kwargs)):
                self.started.append((name, x))

        def leave(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            name = self._stack.pop()
            weights, parts = module.parameters(recurse=False), next(module.children(), None)
            if hasattr(module, "out_features") or (parts is None and any(weight.dim() > 1 for weight in weights)):
                self.last = name
            x = input_of(args, kwargs)
            if is_tokens(x) and is_tokens(output) and first_of(x).shape == first_of(output).shape:
                self.tokens.pop(name, None)
                self.tokens[name] = x, output

        with hooked(self.modules.values(), enter, leave):
            yield


def is_tokens(x: Any) -> bool:
    """Whether a module got or returned tokens, alone or first in a list."""
    return isinstance(first_of(x), Tensor) and first_of(x).dim() == 3


def find_blocks(probe: Probe) -> tuple[list[str], str, str]:
    """The names of the blocks, and of the modules that the tokens enter first and leave last.

    The blocks are children of the module that all attention shares; ``PresetError`` if none gets and returns tokens.
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


def why_others(probe: Probe) -> str:
    """The sentence about attention that is not between all tokens."""
    counts = {first_of(x).shape[1] for _, x in probe.started}
    pairs, of_tokens = set(probe.others), {shape[2] for shape in probe.shapes}
    if len(of_tokens) == 1 and any((keys, queries) in pairs for queries, keys in pairs):
        return SLOTS
    if len(counts) > 1 or not pairs:
        return HIERARCHICAL
    if all(keys > queries and queries in counts for queries, keys in pairs):
        return MORE_KEYS
    if all(keys > queries and keys in counts for queries, keys in pairs) and not probe.paths:
        return CHUNKS
    return HIERARCHICAL
