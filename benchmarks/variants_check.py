"""What a network gives, beside what the caller's own code gives: probabilities, attention of a patch, relevance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from PIL import Image
from timm.data import create_transform
from torch import Tensor, nn

import vit_demo
from benchmarks.explicit import Explicit
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

CLOSE = 1e-4
"""Largest difference of probabilities."""
CAT = Image.open(EXAMPLE_PHOTOS["cat"].path).convert("RGB")
NOISE = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(5), device="cpu")
QUERY = (1, 2)
"""Row and column of the patch whose attention is compared."""
GIVEN = "Its input was given, so this package prepared nothing."
Run = Callable[[Tensor], tuple[Tensor, list[Tensor]]]
"""From an input to logits, and the attention ``[1, H, N, N]`` of each block, with their graph."""

Work = Callable[[], str]
"""Compares one variant and returns what was said of it; raises ``DifferentError``."""


class DifferentError(Exception):
    """The package gives something else than the caller's own code."""


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """A network in eval mode whose answers differ between pictures."""
    torch.manual_seed(0)
    module, generator = make().eval(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += torch.randn(parameter.shape, generator=generator) / (parameter.shape or (1,))[-1] ** 0.5
    return module


def raw(photo: Image.Image, side: int = 32) -> Tensor:
    """Pixels from 0 to 1 by timm's transform, ``[1, 3, side, side]``."""
    return create_transform(side, crop_pct=1, mean=(0,) * 3, std=(1,) * 3, interpolation="bicubic")(photo)[None]


def close(found: Any, expected: Any, what: str, most: float = CLOSE) -> None:
    """``DifferentError`` with the largest difference, if two results are not the same."""
    x, y = (
        one.detach().double() if isinstance(one, Tensor) else torch.tensor(one).double() for one in (found, expected)
    )
    if x.shape != y.shape:
        raise DifferentError(f"{what}: {list(x.shape)}, not {list(y.shape)}")
    if x.numel() and not (off := float((x - y).abs().max())) <= most:
        raise DifferentError(f"{what}: {off:.2g} off")


def same(given: Any, module: nn.Module, expected: Tensor, *maps: Any, **how: Any) -> str:
    """Compares the probabilities ``[K]`` of a network in memory, and with arguments of ``compare_maps`` its maps."""
    ex = vit_demo.explore(given, module, **how)
    close(ex.probabilities, expected, "probabilities")
    if maps:
        compare_maps(ex, module, *maps)
    return ex.preprocessing.note.replace(GIVEN, "").strip()


def compare_maps(ex: Any, module: nn.Module, x: Tensor, run: Run, at_once: int = 1) -> None:
    """Compares the attention of a patch, and relevance where the head reads some tokens alike.

    Args:
        ex: The result for ``x``.
        module: The network.
        x: The input that the caller's own code gives it, ``[1, 3, height, width]``.
        run: The network written out.
        at_once: How many attentions read the same tokens.
    """
    (rows, cols), p, inputs = ex.grid, ex.patch_size, x.clone().requires_grad_()
    with Tokens(module) as plain:
        logits, matrices = run(inputs)
    index, count = int(logits[0].argmax()), matrices[-1].shape[-1]
    place = []
    for square in range(rows * cols):
        row, col, other = square // cols * p, square % cols * p, x.clone()
        other[..., row : row + p, col : col + p] += 0.5
        with torch.no_grad(), Tokens(module) as changed:
            run(other)
        place.append(int((changed.first(count) - plain.first(count)).norm(dim=2).argmax()))
    if len(set(place)) < len(place):
        raise DifferentError("a square that is no token's own")
    seen, read = torch.autograd.grad(logits[0, index], [inputs, plain.last(count)], retain_graph=True)
    if not all(part.any() for band in seen[0].chunk(rows, 1) for part in band.chunk(cols, 2)):
        raise DifferentError("a square of the map has no gradient")
    expected = matrices[-1][0].mean(0)[place[QUERY[0] * cols + QUERY[1]], place]
    close(ex.attention(-1, query=QUERY).flatten(), expected, "attention of a patch")
    size = read[0].norm(dim=1)
    if size[size > 0].std(correction=0) > 1e-3 * size.max():
        return  # what the head reads is no plain mean
    row = start = (size > 0).double()[None] / (size > 0).sum()
    gradients = torch.autograd.grad(logits[0, index], matrices)
    shares = [(a * b)[0].relu().mean(0).double() for a, b in zip(matrices, gradients, strict=True)]
    for first in reversed(range(0, len(shares), at_once)):
        row = row + row @ torch.stack(shares[first : first + at_once]).sum(0)
    expected = (row - start)[0, place].detach()
    close(ex.relevance(index).flatten() / expected.max(), expected / expected.max(), "relevance", 1e-3)


class Tokens:
    """The first and last tokens ``[1, N, D]`` that modules of a network get and return within it."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.given, self.returned = module, list[Tensor](), list[Tensor]()

    def __enter__(self) -> Tokens:
        def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.given.extend(x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.dim() == 3)

        def leave(_: nn.Module, __: Any, output: Any) -> None:
            output = output[0] if isinstance(output, tuple | list) else output
            self.returned.extend([output] if isinstance(output, Tensor) and output.dim() == 3 else [])

        self.hooks = [one.register_forward_pre_hook(enter, with_kwargs=True) for one in self.module.modules()]
        self.hooks += [one.register_forward_hook(leave) for one in self.module.modules()]
        return self

    def __exit__(self, *_: Any) -> None:
        for hook in self.hooks:
            hook.remove()

    def first(self, count: int) -> Tensor:
        """Those of so many that are given first."""
        return next(x for x in self.given if x.shape[1] == count).detach()

    def last(self, count: int) -> Tensor:
        """Those of so many that are returned last."""
        return next(x for x in reversed(self.returned) if x.shape[1] == count and x.requires_grad)


def written_out(module: nn.Module, bias: Tensor | float, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """``Run`` of a ``Vit``, by the definition of its attention."""
    matrices, spelled = list[Tensor](), [block.attend for block in module.blocks]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        matrices.append((torch.einsum("bhid,bhjd->bhij", q, k) / 8**0.5 + bias).softmax(-1))
        return torch.einsum("bhij,bhjd->bhid", matrices[-1], v)

    try:
        for block in module.blocks:
            block.attend = attend
        return module(x), matrices
    finally:
        for block, one in zip(module.blocks, spelled, strict=True):
            block.attend = one


def explicit(module: nn.Module, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """``Run`` of a network of another library."""
    with Explicit() as seen:
        output = module(x)
    return output if isinstance(output, Tensor) else output.logits, seen.matrices
