"""Finds what must be known of a network: a few passes on noise, and no assumption about its class."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import Pool
from vit_demo.trace.recording import Recording
from vit_demo.trace.structure import NOT_SEEN, Probe, Structure, find_blocks, find_patch_size, find_pool, logits_of
from vit_demo.trace.traced_vit import TracedViT, in_eval

MAX_PREFIX = 17
"""Tokens before the patches: a class token and sixteen registers, more than any published network has."""
SAME = 1e-3
"""Largest difference of logits, as a share of their size, between leaving tokens out and masking them."""
FAILURES = (RuntimeError, ValueError, TypeError, AssertionError, IndexError)
"""What networks raise for an input that they do not take."""


def adapt(module: nn.Module, image_size: int, *, patch_size: int | None = None, in_channels: int = 3) -> TracedViT:
    """Makes a ``TracedViT`` of a network.

    Args:
        module: Takes images ``[B, C, height, width]``; gives logits ``[B, K]``, or an output of transformers.
        image_size: Side of its input, in pixels.
        patch_size: In pixels; found for None.
        in_channels: Of the images.

    Raises:
        PresetError: If it cannot be run on such images, or its attention, patches or tokens are not found.
    """
    if isinstance(module, ViT):
        return TracedViT.of(module)
    with in_eval(module):
        return _adapt(module, image_size, patch_size, in_channels)


def outline(module: nn.Module, image_size: int) -> tuple[ViTConfig, bool]:
    """The shape of a network, and whether its attention has a mask; costs nothing on the meta device.

    What the head reads is not found in this way: the field ``pool`` says nothing.

    Raises:
        PresetError: As ``adapt``.
    """
    probe, config, *_ = _probe(module, image_size, None, 3)
    return config, probe.has_mask


def _probe(
    module: nn.Module, image_size: int, patch_size: int | None, in_channels: int
) -> tuple[Probe, ViTConfig, tuple[list[str], str, str], Tensor, Any]:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(1, in_channels, image_size, image_size, generator=generator, device="cpu", dtype=torch.float32)
    noise = noise.to(next(module.parameters(), torch.zeros(())))
    probe = Probe()
    with torch.no_grad(), probe.watching(module), probe:
        try:
            output = module(noise)
        except FAILURES as error:
            size = f"{in_channels} x {image_size} x {image_size}"
            raise PresetError(f"This network does not take images of {size}: pass a tensor or transform=.") from error
    if not probe.paths:
        raise PresetError(NOT_SEEN)
    parts = find_blocks(probe)
    num_tokens = probe.shapes[0][2]
    patch = patch_size or find_patch_size(module, image_size, num_tokens)
    prefix = num_tokens - (image_size // patch) ** 2
    if not 0 <= prefix <= MAX_PREFIX or image_size % patch:
        raise PresetError(f"Patches of {patch} pixels do not give the {num_tokens} tokens of this network.")
    # timm's networks without classes return the pooled vector.
    has_classes = getattr(module, "num_classes", 1) != 0 and (isinstance(output, Tensor) or "logits" in output)
    heads, dim = probe.shapes[0][1], probe.tokens[parts[2]][0].shape[2]
    config = ViTConfig(
        image_size=image_size,
        patch_size=patch,
        in_channels=in_channels,
        num_classes=logits_of(output).shape[1] if has_classes else 0,
        embed_dim=dim if dim % heads == 0 else heads * probe.shapes[0][3],
        depth=len(probe.paths),
        num_heads=heads,
        pool="mean",
        class_token=False,
        num_registers=prefix,
    )
    return probe, config, parts, noise, output


def _adapt(module: nn.Module, image_size: int, patch_size: int | None, in_channels: int) -> TracedViT:
    probe, config, (blocks, entry, end), noise, output = _probe(module, image_size, patch_size, in_channels)
    structure = Structure(
        blocks=tuple(blocks),
        entry=entry,
        exit=end,
        norm=probe.norm_after(end),
        projections=tuple(probe.projections.get(index, "") for index in range(config.depth)),
        in_tuples=isinstance(probe.tokens[end][1], tuple),
        leaves_out=False,
        takes_any_size=False,
        has_head=not isinstance(output, Tensor) or probe.ends_in_head(config.num_classes),
    )
    prefix = config.num_registers
    pool = _pool(TracedViT(module, config, structure), probe.tokens[end][1], prefix)
    names = [name for name, _ in module.named_parameters()]
    has_class_token = prefix > 0 and (pool != "mean" or any("cls" in name or "class_" in name for name in names))
    config = replace(config, pool=pool, class_token=has_class_token, num_registers=prefix - has_class_token)
    network = TracedViT(module, config, structure)
    structure = replace(structure, leaves_out=_can_leave_out(network, noise), takes_any_size=_is_flexible(network))
    return TracedViT(module, config, structure)


def _pool(network: TracedViT, output: Any, num_prefix_tokens: int) -> Pool:
    """What the head reads; see ``find_pool``."""
    x = output[0] if isinstance(output, tuple) else output
    with torch.inference_mode(False), torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        logits = network.forward_head(x).float()
        weights = torch.linspace(1, 2, logits.shape[1], device=logits.device).cos()
        (gradient,) = torch.autograd.grad((logits * weights).sum(), x)
    return find_pool(gradient[0].float(), num_prefix_tokens)


@torch.no_grad()
def _can_leave_out(network: TracedViT, noise: Tensor) -> bool:
    """Whether a pass without the tokens of some patches gives what masking them gives."""
    rows = network.config.image_size // network.patch_size
    kept = torch.arange(0, rows * rows, 2, device=noise.device)[None]
    try:
        masked = network(noise, kept_patches=kept).float()
    except RuntimeError as error:
        raise PresetError(
            "The tokens of this network were not found: its blocks must get and return [B, N, D]."
        ) from error
    network.leaves_out = True
    try:
        found = network(noise, kept_patches=kept).float()
    except FAILURES:
        return False
    return bool((found - masked).abs().max() <= SAME * masked.abs().max().clamp_min(1e-3))


@torch.no_grad()
def _is_flexible(network: TracedViT) -> bool:
    """Whether a pass on a picture of another shape has a token for each of its patches."""
    c, recording = network.config, Recording()
    shape = 1, c.in_channels, c.image_size, c.image_size - c.patch_size
    try:
        network(torch.zeros(shape, device=network.device, dtype=network.dtype), recording)
    except (*FAILURES, PresetError):
        return False
    return recording.num_tokens == c.num_prefix_tokens + recording.grid[0] * recording.grid[1]
