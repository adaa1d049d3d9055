"""What one pass tells of each picture: logits, the map of the predicted class, and what that map amounts to."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vit_demo.inference.maps import maps
from vit_demo.methods import find_method
from vit_demo.metrics import faithfulness
from vit_demo.trace import TracedViT
from vit_demo.trace.running import in_this_thread

TOKEN_NUMBERS = 64  # numbers to which a token is projected at random, which nearly keeps similarities


def one_pass(
    model: TracedViT, x: Tensor, truths: Tensor, method: str, against: int | None, *, patch_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Predictions and maps from one forward and backward pass, where the method takes no more.

    Args:
        model: The network.
        x: Its inputs ``[B, C, height, width]``.
        truths: The classes of the maps ``[B]``; the predicted one for -1.
        method: Name of the maps' method.
        against: Index of the class that these are compared with; None for none.
        patch_size: In pixels.

    Returns:
        Logits ``[B, K]``; maps ``[B, rows, cols]``; the mean token of the patches with the first half of the evidence,
        of length 1, ``[B, at most 64]``, or ``[B, 0]`` where tokens cannot be seen.
    """
    found, logits, tokens = find_method(method), list[Tensor](), list[Tensor]()

    def target(outputs: Tensor) -> Tensor:
        logits.append(outputs.detach())
        of = truths[sum(map(len, logits)) - len(outputs) :][: len(outputs)]
        return torch.where(of < 0, outputs.argmax(1), of)

    def score(outputs: Tensor) -> Tensor:
        found = outputs.gather(1, target(outputs)[:, None])[:, 0]
        return found if against is None else found - outputs[:, against]

    def keep(_: nn.Module, args: Any, output: Any) -> None:
        last = model.structure.unpack(output).detach()
        tokens.append(model.final_norm(last[:, model.config.num_prefix_tokens :]).detach().float())

    hook = model.blocks[-1].register_forward_hook(in_this_thread(keep)) if model.shows_tokens else None
    is_quick, targets = found.cost == "backward" and found.class_specific, None
    try:
        if is_quick:
            values = maps(model, (), x, method, score, None, {})
        else:
            with torch.no_grad():
                targets = target(model(x, patch_size=patch_size))
    finally:
        if hook is not None:
            hook.remove()
    if not is_quick:
        targets = targets if found.class_specific else None
        values = maps(model, [""] * logits[0].shape[1], x, method, targets, against, {})
    evidence = _token(values, torch.cat(tokens)) if tokens else x.new_empty(len(x), 0)
    return torch.cat(logits)[:, : model.config.num_classes].float(), values, evidence


def _token(values: Tensor, tokens: Tensor) -> Tensor:
    """The mean of tokens ``[B, N, D]``, weighted by the evidence, until half of that is reached."""
    largest, order = values.flatten(1).clamp_min(0).sort(dim=1, descending=True)
    kept = torch.where(largest.cumsum(1) - largest < largest.sum(1, keepdim=True) / 2, largest, 0)
    mean = (kept[:, None] @ tokens.gather(1, order[:, :, None].expand_as(tokens)))[:, 0]  # [B, D]
    if mean.shape[1] > TOKEN_NUMBERS:
        random = torch.randn(mean.shape[1], TOKEN_NUMBERS, generator=torch.Generator().manual_seed(0))
        mean = mean @ random.to(mean)
    return torch.nn.functional.normalize(mean, dim=1)


def shares_of(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The share of the evidence for a class in each patch, ``[..., rows, cols]``; 0 everywhere if there is none."""
    positive = np.nan_to_num(values.astype(np.float64)).clip(0)
    return positive / np.maximum(positive.sum((-2, -1), keepdims=True), 1e-12)


def measure(values: NDArray[np.floating], covered: NDArray[np.floating] | None) -> dict[str, Any]:
    """The figures of a map ``[rows, cols]`` and, if the object is known, of the share of each patch that it covers."""
    names = ("on_object", "peak_on_object", "object_area", "on_border", "patches_with_half")
    shares, found = shares_of(values), dict[str, Any].fromkeys(names)
    if covered is not None:
        found["object_area"] = float(covered.mean())
    if shares.any():
        found["on_border"] = float(1 - shares[1:-1, 1:-1].sum())
        found["patches_with_half"] = int((np.sort(shares, axis=None)[::-1].cumsum() < 0.5 - 1e-9).sum()) + 1
        if covered is not None:
            found["on_object"] = float((shares * covered).sum())
            found["peak_on_object"] = bool(covered.flat[shares.argmax()] >= 0.5)
    return found


def tested(model: TracedViT, x: Tensor, target: int, values: Tensor, *, patch_size: int) -> float:
    """Insertion minus deletion of a map: the areas under both curves of the class's probability."""
    found = faithfulness(model, x, target, values, torch.zeros_like(x[:, :, :1, :1]), seeds=0, patch_size=patch_size)
    return found.insertion_area - found.deletion_area


def checksum(model: TracedViT, **_: Any) -> int:
    """A number that tells a network's weights from others."""
    found = 0
    for value in model.state_dict().values():
        found = zlib.crc32(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy(), found)
    return found
