"""Which pixels reach which token, and what a network does to them before: from gradients, in a pass up to its blocks.

A pixel's gradient is multiplied by a number of its token's own wherever that token's is. So one pass of random numbers
says of every pixel whose it is. Half the gradient of a squared sum, divided by that of the sum, is the value that a
pixel has become.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vit_demo.errors import PresetError
from vit_demo.trace.outputs import LINEAR
from vit_demo.trace.reasons import MOVES, NO_GRADIENT, NOT_IN_ORDER, why_no_squares
from vit_demo.trace.running import hooked
from vit_demo.trace.structure import input_of
from vit_demo.trace.traced_vit import TracedViT

Colours = tuple[tuple[float, float], ...] | None
"""Factor and offset by which a network changes each channel; None where it changes pixels in another way."""

WEIGHTED: set[Callable[..., Any]] = {*LINEAR, F.conv3d, F.layer_norm, F.rms_norm}
"""Functions with which a patch embedding begins."""
WITHIN = 0.75  # patches by which the middle of what a token sees may lie beside its square's (stems of convolutions)
SAMPLE = 6  # tokens that are looked at where a token sees more than its square


class _Reached(BaseException):
    """Ends a pass; no network catches it."""


class _Watch(TorchFunctionMode):
    """Leaves gradients on, and keeps what comes to the first weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first = list[Tensor]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        if func is torch._C._set_grad_enabled:
            return None
        if func in (Tensor.detach, torch.detach):
            return args[0]
        result = func(*args, **(kwargs or {}))
        if func in WEIGHTED and len(self.first) < 4:
            given = [x for x in (*args, *(kwargs or {}).values()) if isinstance(x, Tensor) and x.requires_grad]
            if not given or not _is_of_pixels(given[0], result, [*args, *(kwargs or {}).values()]):
                self.first += [x for x in given if not isinstance(x, nn.Parameter)]
        return result


def _is_of_pixels(x: Tensor, result: Tensor, given: list[Any]) -> bool:
    """Whether a convolution leaves pixels: a blur, other colours, or grey by weights that nobody has learned."""
    if x.dim() != 4:
        return False
    is_learned = any(isinstance(one, nn.Parameter) for one in given)
    is_grey = not is_learned and result.shape[2:] == x.shape[2:] and result.shape[1] < x.shape[1]
    return is_grey or result.shape[:2] == x.shape[:2]


def _tokens(network: TracedViT, images: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The images with a graph, the tokens ``[N, D]`` that they become, and what comes to the first weights."""
    found, structure = list[Tensor](), network.structure

    def end(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found.append(structure.unpack(input_of(args, kwargs))[0])
        raise _Reached

    with torch.enable_grad(), suppress(_Reached), hooked([network.module.get_submodule(structure.entry)], end):
        x = images.detach().clone().requires_grad_()
        with (watch := _Watch()):
            network.module(x, **network.options(x, network.patch_size))
    return x, found[0], watch.first


def find_pixels(network: TracedViT, images: Tensor) -> tuple[int, bool, Colours]:
    """Proves that the pixels of each token are those of its square.

    Args:
        network: As ``adapt`` found it, its tokens in their own order.
        images: Noise ``[1, C, height, width]``.

    Returns:
        How many tokens stand before the patches, whether tokens see more than their squares, and what the network does
        to the colours.

    Raises:
        PresetError: If a token's pixels are others.
    """
    x, tokens, first = _tokens(network, images)
    p, (height, width), num_prefix = network.patch_size, images.shape[2:], network.config.num_prefix_tokens
    rows, cols = height // p, width // p
    other = _tokens(network, 1 - images.flip(2))[1]
    moved = (tokens != other).any(1).cpu().nonzero().flatten().tolist()
    is_run = len(moved) == rows * cols == moved[-1] - moved[0] + 1
    before = moved[0] if is_run else num_prefix
    generator, count = torch.Generator().manual_seed(3), rows * cols
    of_patches = tokens[before : before + count].float()
    values = of_patches @ torch.randn(tokens.shape[1], generator=generator, device="cpu").to(of_patches)  # [count]
    codes = 1 + 3 * torch.rand(4, count, generator=generator, device="cpu")
    codes[0] = 1
    if len(values) < count:
        raise PresetError(NOT_IN_ORDER)
    if not values.requires_grad:
        raise PresetError(NO_GRADIENT)
    plain, *coded = [_gradient(x, (values * code.to(values)).sum()) for code in codes]
    size = (plain * plain).sum(0)  # [height, width]
    if not size.any():
        raise PresetError(NO_GRADIENT)
    is_seen = size > 1e-10 * size.max()
    square = (torch.arange(height, device="cpu") // p * cols)[:, None] + torch.arange(width, device="cpu") // p
    ratios = torch.stack([(one * plain).sum(0) / size.clamp_min(1e-30) for one in coded])
    is_own = ((ratios - codes[1:, square]).abs() <= 0.1).all(0) | ~is_seen
    is_exact = bool(is_own.all()) and len(square[is_seen].unique()) == count
    wrong = ratios[:, ~is_own][:, :64]
    is_apart = ((wrong[:, :, None] - codes[1:, None]).abs() < 0.05).all(0).any(1).float().mean() > 0.5
    if not is_exact and (
        is_apart
        or _are_moved(x, [one for one in first if one.shape == x.shape])
        or not _look_at_their_squares(x, values, is_seen, rows, cols, p)
    ):
        raise PresetError(MOVES if _are_moved(x, first) else why_no_squares(network.module, NOT_IN_ORDER))
    return before, not is_exact, _colours(x, first)


def _gradient(x: Tensor, value: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(value, x, retain_graph=True, allow_unused=True)
    return (torch.zeros_like(x) if found is None else found)[0].float().cpu()


def _are_moved(x: Tensor, first: list[Tensor]) -> bool:
    """Whether pixels are at other places, or not as many, where they come to the first weights."""
    reached = next((one for one in first if one.dim() > 2), None)
    if reached is None or reached.shape[-2:] != x.shape[-2:]:
        return reached is not None and reached.numel() != x.numel()
    plain = _gradient(x, reached.sum())
    size = (plain * plain).sum(0)
    is_seen = size > 1e-10 * size.max()
    if not is_seen.all():
        return bool(is_seen.any())
    for axis in (0, 1):  # where each pixel has gone, in the middle
        ramp = torch.linspace(-1, 1, x.shape[2 + axis], device="cpu").unsqueeze(1 - axis)
        place = (_gradient(x, (reached * ramp.to(x)).sum()) * plain).sum(0) / size
        if (place - ramp).abs().median() > 1 / x.shape[2 + axis]:  # half a pixel
            return True
    return False


def _look_at_their_squares(x: Tensor, values: Tensor, is_seen: Tensor, rows: int, cols: int, p: int) -> bool:
    """Whether what some tokens see has its middle at their squares, and no margin goes unseen."""
    for seen in (is_seen.any(0), is_seen.any(1)):
        places = seen.nonzero().flatten()
        if not len(places) or int(places[0]) + len(seen) - 1 - int(places[-1]) > p // 2:
            return False
    others = torch.randperm(rows * cols, generator=torch.Generator().manual_seed(4), device="cpu")[:SAMPLE].tolist()
    for token in {0, cols - 1, (rows - 1) * cols, rows * cols - 1, *others}:
        energy = _gradient(x, values[token]).square().sum(0)
        for axis, place in ((1, token // cols), (0, token % cols)):
            line = energy.sum(axis)
            middle = float((line * torch.arange(len(line), device="cpu")).sum() / line.sum())
            if not abs((middle + 0.5) / p - place - 0.5) <= WITHIN:
                return False
    return True


def _colours(x: Tensor, first: list[Tensor]) -> Colours:
    """The factor and offset of each channel."""
    for reached in first:
        (slope,) = torch.autograd.grad(reached.float().sum(), x, retain_graph=True, allow_unused=True)
        if slope is None:
            continue
        became = _gradient(x, reached.float().square().sum() / 2) / slope[0].float().cpu()
        found = [
            _line(*channel) for channel in zip(x[0].detach().float().cpu(), became, slope[0].float().cpu(), strict=True)
        ]
        return None if None in found else tuple(one for one in found if one)
    return None


def _line(given: Tensor, became: Tensor, slope: Tensor) -> tuple[float, float] | None:
    """The factor and offset of a channel, from its pixels that count; None if these are not all that was done."""
    counts = slope.abs() > 1e-3 * slope.abs().max()
    a, b = given[counts].double(), became[counts].double()
    if len(a) < 2 or not torch.isfinite(b).all():
        return None
    factor = float(((a - a.mean()) * (b - b.mean())).sum() / (a - a.mean()).square().sum())
    offset = float(b.mean() - factor * a.mean())
    rounding = (1e-3 if slope.dtype == torch.float32 else 0.05) * float(b.abs().max())
    return (factor, offset) if float((factor * a + offset - b).abs().max()) <= rounding else None


def scale_of(colours: Colours) -> float | None:
    """What the pixels of a network that normalises by itself are: 1 if from 0 to 1, 255 if from 0 to 255.

    0 if it takes them normalised, as others do; None if that cannot be told.
    """
    if colours is None or any(factor == 0 for factor, _ in colours):
        return None
    means, stds = [-offset / factor for factor, offset in colours], [1 / factor for factor, _ in colours]
    lowest, highest, least, most = min(means), max(means), min(stds), max(stds)
    if max(-lowest, highest) < 0.1 and least > 0.8 and most < 1.25:
        return 0
    if lowest >= -0.05 and highest <= 1.05 and least >= 1 / 300 and most <= 1.05:
        return 1
    is_wide = most > 10 or highest > 1.05
    return 255 if is_wide and lowest >= -13 and highest <= 260 and least >= 0.95 and most <= 260 else None
