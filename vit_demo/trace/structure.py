"""What a network is made of, seen while it runs once: its blocks, its tokens, and which of them its head reads."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.model.config import Pool
from vit_demo.trace.attention_mode import AttentionMode

NOT_SEEN = (
    "No attention was seen in this network: use one that calls torch's scaled_dot_product_attention or a softmax, "
    'without torch.compile (in transformers: attn_implementation="sdpa" or "eager").'
)
LISTS = (nn.ModuleList, nn.Sequential)
NO_PATCHES = "The patches of this network were not found: pass patch_size= with their side in pixels."


OUTPUTS = ("logits", "image_embeds", "pooler_output")
"""Fields of transformers' outputs, the first that is there; the second and third are no classes."""


@dataclass(frozen=True)
class Structure:
    """Where the parts of a network are, by the names of its modules and parameters.

    Attributes:
        blocks: The blocks with attention, in their order.
        entry: The module that the tokens enter first.
        exit: The module that they leave last.
        norm: The module that normalizes them then; empty if none does.
        projections: The weight of the output projection of each attention; empty where there is none.
        in_tuples: Whether a block returns its tokens within a tuple.
        leaves_out: Whether a pass without the tokens of some patches gives what masking them gives.
        takes_any_size: Whether pictures may have other sides than those that the network was found with.
        has_head: Whether the outputs are those of a classifier; an embedding otherwise.
    """

    blocks: tuple[str, ...]
    entry: str
    exit: str
    norm: str = ""
    projections: tuple[str, ...] = ()
    in_tuples: bool = False
    leaves_out: bool = True
    takes_any_size: bool = True
    has_head: bool = True


def logits_of(output: Any) -> Tensor:
    """The logits ``[B, K]``, or the pooled vector, in what a network returns; ``PresetError`` if there is none."""
    found = output if isinstance(output, Tensor) else next((output[n] for n in OUTPUTS if n in output), None)
    if not isinstance(found, Tensor) or found.dim() != 2:
        raise PresetError("This network gives no logits [B, K]: wrap it in a module that does.")
    return found


class Probe(AttentionMode):
    """One pass of a network, with the module in which each attention happened.

    Attributes:
        paths: Of the modules that called each self-attention, outermost first.
        shapes: Of the values, ``[B, H, N, e]``.
        projections: The name of each output projection's weight, where there is one.
        tokens: What each module got and returned, if these are tokens ``[B, N, D]``.
        has_mask: Whether something is added to the scores, such as relative positions.
        last: The name of the last module with weights.
        pools: Whether one query attends to all tokens at the end (attention pooling).
    """

    def __init__(self) -> None:
        super().__init__()
        self.paths, self.shapes, self._stack = list[str](), list[torch.Size](), list[str]()
        self.projections, self._names = dict[int, str](), dict[int, str]()
        self.tokens, self.modules = dict[str, tuple[Tensor, Any]](), dict[str, nn.Module]()
        self.pools = self.has_mask = False
        self.last = ""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        """Notes where it happens."""
        if q.shape[2] == k.shape[2]:
            self.paths.append(self._stack[-1] if self._stack else "")
            self.shapes.append(v.shape)
            self.has_mask |= self.given[3] is not None
        self.pools |= q.shape[2] == 1 < k.shape[2]
        return compute(None)

    def project(self, weight: Tensor) -> None:
        """Notes the output projection of the last self-attention."""
        if self.shapes and weight.shape[1] == self.shapes[-1][1] * self.shapes[-1][3]:
            self.projections[len(self.shapes) - 1] = self._names.get(id(weight), "")

    def ends_in_head(self, count: int) -> bool:
        """Whether a linear map gave so many outputs in the end, but no projection, and not in a headless network."""
        *around, name = self.last.split(".")
        parts = [self.modules[".".join(around[:i])] for i in range(len(around) + 1)]
        last = self.modules[self.last]
        sizes = [weight.shape for weight in last.parameters() if weight.dim() > 1]
        if re.search("proj|embed", name) or any(getattr(part, "num_classes", None) == 0 for part in parts):
            return False
        return getattr(last, "out_features", None) == count or any(count in size for size in sizes)

    def norm_after(self, end: str) -> str:
        """The name of the module that normalizes what another returned; empty if none does."""
        output = self.tokens[end][1]
        last = output[0] if isinstance(output, tuple) else output
        after = [name for name, (x, _) in self.tokens.items() if x is last]
        return next((name for name in after if "Norm" in type(self.modules[name]).__name__), "")

    @contextmanager
    def watching(self, module: nn.Module) -> Iterator[None]:
        """Follows which module runs."""
        self.modules = dict(module.named_modules())
        self._names = {id(parameter): name for name, parameter in module.named_parameters()}

        def enter(name: str) -> Callable[..., None]:
            return lambda module, args, kwargs: self._stack.append(name)

        def leave(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
                self._stack.pop()
                weights, parts = next(module.parameters(recurse=False), None), next(module.children(), None)
                if hasattr(module, "out_features") or (weights is not None and parts is None):
                    self.last = name
                x = args[0] if args else kwargs.get("hidden_states")
                y = output[0] if isinstance(output, tuple) else output
                if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dim() == 3 and x.shape == y.shape:
                    self.tokens[name] = x, output

            return hook

        handles = []
        for name, one in self.modules.items():
            handles += [
                one.register_forward_pre_hook(enter(name), with_kwargs=True),
                one.register_forward_hook(leave(name), with_kwargs=True),
            ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


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


def find_patch_size(module: nn.Module, image_size: int, num_tokens: int) -> int:
    """The side of the patches: that of the first convolution whose stride is its kernel, else from the tokens.

    ``PresetError`` if no number of tokens before the patches makes these a square.
    """
    for one in module.modules():
        if isinstance(one, nn.Conv2d) and one.kernel_size == one.stride and one.kernel_size[0] > 1:
            size = one.kernel_size[0]
            if isinstance(size, int) and (image_size // size) ** 2 <= num_tokens:
                return size
    for prefix in range(min(num_tokens, 18)):
        side = math.isqrt(num_tokens - prefix)
        if side and side * side == num_tokens - prefix and image_size % side == 0:
            return image_size // side
    raise PresetError(NO_PATCHES)


def find_pool(gradient: Tensor, num_prefix_tokens: int) -> Pool:
    """What the head reads, from the gradient ``[N, D]`` of the output at the tokens after the last block."""
    size = gradient.norm(dim=1)
    prefix, patches = size[:num_prefix_tokens], size[num_prefix_tokens:]
    if not patches.any():
        return "cls+next" if len(prefix) > 1 and prefix[1] else "cls"
    if not prefix.any():
        return "mean"
    # A mean of all tokens reads the class token like any other; beside a mean of the patches it counts much more.
    return "all" if prefix[0] < 10 * patches.mean() else "cls+mean"
