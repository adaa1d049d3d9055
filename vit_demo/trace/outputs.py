"""What a network returns: which of it are the logits, and whether these are probabilities already.

The logits are the field ``logits``, else what the last linear map of a pass led to; ``Sources`` follows the maps.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from vit_demo.errors import InputError, PresetError
from vit_demo.trace.attention_mode import LOWEST
from vit_demo.trace.products import MATMUL
from vit_demo.trace.written_out import SOFTMAX

Output = str | int | Callable[[Any], Tensor]
"""Where a network's logits are in what it returns: the name or index of a part, or a function that gives them."""
Path = tuple[str | int, ...]
Already = Literal["", "unclear", "softmax", "sigmoid"]
"""What made the outputs probabilities; empty for logits, unclear for numbers from 0 to 1 of another origin."""

EMBEDDINGS = ("image_embeds", "pooler_output", "last_hidden_state")
"""Fields of transformers' outputs that have no classes, the first that is there."""
LINEAR: set[Callable[..., Any]] = {
    *MATMUL, F.linear, F.bilinear, F.conv1d, F.conv2d, torch.addmm, Tensor.addmm, torch.einsum, torch.tensordot,
}  # fmt: skip
SIGMOID: set[Callable[..., Any]] = {torch.sigmoid, Tensor.sigmoid, F.sigmoid, torch.special.expit}
BOUNDED: set[Callable[..., Any]] = {
    *SIGMOID, *SOFTMAX, F.hardsigmoid, F.log_softmax, torch.log_softmax, Tensor.log_softmax, F.logsigmoid, torch.exp,
    Tensor.exp, torch.tanh, Tensor.tanh, F.tanh,
}  # fmt: skip
"""Functions that turn logits into something else of the same shape."""
SORTED: set[Callable[..., Any]] = {torch.sort, Tensor.sort, torch.topk, Tensor.topk}
"""Functions that leave nothing at the place of its class."""
MASKED = -1e8  # the highest logit of a masked class
DEPTH = 4  # lists, tuples and fields that may be around a tensor


OF_SIGMOIDS = (
    "The outputs of this network are a function of sigmoids, such as their logarithms: pass output= with a function "
    "that makes logits of what it returns."
)


def parts_of(output: Any) -> list[tuple[str | int, Any]]:
    """The names or numbers of the parts of what a network returns, with these parts."""
    if isinstance(output, Mapping):
        return list(output.items())
    if isinstance(output, tuple | list):
        return list(zip(getattr(output, "_fields", range(len(output))), output, strict=True))
    return list(getattr(output, "__dict__", {}).items())


def tensors_in(output: Any, path: Path = ()) -> dict[Path, Tensor]:
    """Every tensor of floats in what a network returns, by the way to it."""
    if isinstance(output, Tensor):
        return {path: output} if output.is_floating_point() else {}
    found: dict[Path, Tensor] = {}
    for key, part in parts_of(output) if len(path) < DEPTH else ():
        found |= tensors_in(part, (*path, key))
    return found


def logits_of(output: Any, where: Path | Callable[[Any], Tensor] | None = None) -> Tensor:
    """The logits ``[B, K]`` in what a network returns; of tokens ``[B, N, D]`` the first.

    Args:
        output: What it returned.
        where: As ``find_logits`` found it; for None only what needs no pass to be found.

    Raises:
        PresetError: If they are not there.
    """
    where = find_logits(output, Sources()) if where is None else where
    if callable(where):
        output = where(output)
    else:
        for key in where:
            output = dict(parts_of(output))[key]
    if isinstance(output, Tensor) and output.dim() == 3 and (callable(where) or where[-1:] != ("logits",)):
        output = output[:, 0]
    if not isinstance(output, Tensor) or output.dim() != 2:
        shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise PresetError(
            f"This network gives {shape}, no logits [B, K]: pass output= with a function that makes them of what it "
            "returns, or a classifier."
        )
    return output


def finite(logits: Tensor) -> Tensor:
    """Logits whose masked classes have a low number: with minus infinity, or the like, nothing can be computed."""
    return logits.masked_fill(logits <= max(MASKED, torch.finfo(logits.dtype).min / 2), LOWEST)


class Sources:
    """Which linear maps of one pass each tensor came from, and which sigmoid or the like followed the last of them."""

    def __init__(self) -> None:
        self._of, self._modules, self._sorted = WeakIdKeyDictionary(), list[str](), WeakIdKeyDictionary()

    def note(self, func: Callable[..., Any], given: list[Any], result: Any, module: str) -> None:
        """Notes what a function of torch, called in a module, made of its arguments."""
        made = [one for one in (result if isinstance(result, tuple | list) else [result]) if isinstance(one, Tensor)]
        if not made:
            return
        parts = [part for one in given for part in (one if isinstance(one, tuple | list) else [one])]
        before = [self.of(part) for part in parts if isinstance(part, Tensor)]
        maps = frozenset[int]().union(*(maps for maps, _ in before))
        bounded = func if func in BOUNDED else next((one for _, one in before if one and func not in LINEAR), None)
        if func in LINEAR:
            maps |= {len(self._modules)}
            self._modules.append(module)
        for one in made:
            if maps and not isinstance(one, nn.Parameter):
                self._of[one] = maps, bounded
            if func in SORTED:
                self._sorted[one] = True

    def of(self, x: Tensor) -> tuple[frozenset[int], Callable[..., Any] | None]:
        """The numbers of the maps, and what bounded that which the last of them gave, if anything did."""
        found: tuple[frozenset[int], Callable[..., Any] | None] = self._of.get(x, (frozenset(), None))
        return found

    def is_sorted(self, x: Tensor) -> bool:
        """Whether its numbers are in an order of their size, so that none is always that of one class."""
        return x in self._sorted

    def module_of(self, x: Tensor) -> str:
        """The module of the last map; that of the whole network for a tensor that was not followed."""
        return self._modules[max(maps)] if (maps := self.of(x)[0]) else ""


def find_logits(output: Any, sources: Sources, wanted: Output | None = None) -> Path | Callable[[Any], Tensor]:
    """Where in what a network returns the logits are.

    Args:
        output: Of a picture alone.
        sources: Of the pass.
        wanted: What the caller says; None for nothing.

    Raises:
        InputError: If there is no such part.
        PresetError: If none or several may be the logits.
    """
    if callable(wanted):
        return wanted
    found = tensors_in(output)
    names = ", ".join(f"{'.'.join(map(str, path)) or 'alone'}: {list(x.shape)}" for path, x in list(found.items())[:6])
    if wanted is not None:
        found = {path: x for path, x in found.items() if _is_wanted(output, path, wanted)}
        if not found:
            raise InputError(f"There is no output {wanted!r}: choose one of those that this network returns ({names}).")
    named = sorted((path for path in found if path[-1:] == ("logits",)), key=len)
    if named and (len(named) == 1 or len(named[0]) < len(named[1])):
        return named[0]
    if len(found) == 1:
        return next(iter(found))
    computed = [path for path, x in found.items() if sources.of(x)[0]] or list(found)
    rows = {path: found[path] for path in computed if found[path].dim() == 2 and path[-1] not in EMBEDDINGS}
    unique = list({id(x): path for path, x in reversed(rows.items())}.values())
    if len(unique) > 1:
        maps = {path: sources.of(rows[path])[0] for path in unique}
        last = max(max(one, default=-1) for one in maps.values())
        ends = [path for path in unique if last in maps[path]]
        others = [maps[path] for path in unique if path not in ends]
        plain = [path for path in ends if not sources.of(rows[path])[1]]
        unique = (plain or ends) if ends and all(max(one) in maps[ends[0]] for one in others) else unique
    if len(unique) == 1:
        return unique[0]
    if not unique:
        embeddings = [path for name in EMBEDDINGS for path in found if path[-1] == name]
        if embeddings:
            return embeddings[0]
    raise PresetError(
        f"Nothing says which of this network's outputs are its logits [B, K] ({names}): pass output= with a name, an "
        "index, or a function that gives them."
    )


def _is_wanted(output: Any, path: Path, wanted: str | int) -> bool:
    if isinstance(wanted, str):
        return wanted in path
    keys = [key for key, _ in parts_of(output)]
    return -len(keys) <= wanted < len(keys) and path[:1] == (keys[wanted],)


def already_probabilities(rows: Tensor, bounded: Callable[..., Any] | None) -> Already:
    """What made outputs ``[B, K]`` of several pictures probabilities, if anything did.

    ``bounded`` is the sigmoid or the like that followed the last linear map, if one did. ``PresetError`` if they are a
    function of probabilities.
    """
    x, rounding = rows.cpu().double(), 1e-4 + 4 * torch.finfo(rows.dtype).eps
    sums, within = x.sum(1), bool(((x >= 0) & (x <= 1 + rounding)).all())
    if x.shape[1] > 1 and bool((x >= 0).all() and sums[0] > 0 and ((sums - sums[0]).abs() <= rounding * sums[0]).all()):
        return "softmax"  # in per cent, too
    if within and bounded:
        return "sigmoid"
    if bounded in {*SIGMOID, F.logsigmoid} and bool((x >= 0).all() or (x <= 0).all()):
        raise PresetError(OF_SIGMOIDS)
    return "unclear" if within and x.numel() > 12 else ""


class Undo(TorchFunctionMode):
    """A context in which a pass keeps what its last softmax or sigmoid of ``[B, K]`` was given."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[Any, Any] = (None, None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        result = func(*args, **(kwargs or {}))
        if func in SOFTMAX | SIGMOID and result.dim() == 2:
            self._last = result, args[0] if args else (kwargs or {})["input"]
        return result

    def logits(self, probabilities: Tensor, made_by: Already) -> Tensor:
        """The logits of which a softmax or sigmoid made probabilities ``[B, K]``: what it was given, or their like."""
        result, given = self._last
        if result is probabilities:
            return given
        if made_by == "softmax":
            return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()
        return probabilities.logit(torch.finfo(probabilities.dtype).eps)
