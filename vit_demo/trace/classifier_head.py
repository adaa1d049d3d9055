"""Which tokens a network's head reads, and whether patches may be missing from its sequence; each is tried out."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vit_demo.errors import PresetError
from vit_demo.model.config import Pool
from vit_demo.model.pooling import pooled_slices
from vit_demo.trace.attention_mode import AttentionMode
from vit_demo.trace.running import hooked
from vit_demo.trace.structure import first_of
from vit_demo.trace.trace import Trace
from vit_demo.trace.traced_vit import TracedViT

NO_GRADIENTS = (
    "This network has no gradients: pass one with floating-point weights, whose outputs are not detached or rounded."
)
SAME = 1e-3  # largest difference of logits, as a share of their size, between leaving tokens out and masking them


def head_gradient(network: TracedViT, output: Any) -> Tensor:
    """The gradient ``[N, D]`` of some mixture of the logits at what the last block returned, prefix tokens first.

    ``PresetError`` for a network without gradients.
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = network.structure.unpack(output).detach().clone().requires_grad_()
        try:
            (gradient,) = torch.autograd.grad(_mixed(network.forward_head(x)).sum(), x)
        except RuntimeError as error:  # quantized
            raise PresetError(NO_GRADIENTS) from error
    return gradient[0].float()


def _mixed(logits: Tensor) -> Tensor:
    return logits.float() @ torch.linspace(1, 2, logits.shape[1], device=logits.device).cos()


class _ConstantPooling(AttentionMode):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        out = compute(None)
        return out if q.shape[2] == k.shape[2] else out.detach()


def shares_read(network: TracedViT, x: Tensor, score: Callable[[Tensor], Tensor]) -> Tensor:
    """The share ``[B, N]`` of each token in the gradient of a score; all 0 where attention pooling alone reads.

    The gradient is that at the last tokens ``[B, N, D]``, after the final norm if a module norms; ``score`` makes
    ``[B]`` of logits.
    """
    structure, normed = network.structure, list[Tensor]()
    norm = [network.module.get_submodule(structure.norm)] if structure.norm else []
    with torch.inference_mode(False), torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        with hooked(norm, leave=lambda *given: normed.append(given[-1])), _ConstantPooling(len(x)):
            total = score(network.forward_head(x)).sum() + 0 * x.sum()  # which has a graph in any case
        last = next((one for one in normed if one.numel() == x.numel()), x)
        (gradient,) = torch.autograd.grad(total, last, materialize_grads=True)
    sizes = (gradient if last is x else structure.unpack(gradient)).float().norm(dim=2)
    return sizes / sizes.sum(1, keepdim=True).clamp_min(1e-30)


def reads_evenly(network: TracedViT, output: Any) -> bool:
    """Whether each token of a run that the head reads (``pooled_slices``) has the same share, whatever they are."""
    x, prefix = network.structure.unpack(output)[:, -1:], network.config.num_prefix_tokens
    signs = 1 - 2 * (torch.arange(first_of(output).numel() // x.numel(), device=x.device) % 3 == 1).to(x)
    shares = shares_read(network, x * signs[:, None], _mixed)[0]  # a norm has the same slope at both
    runs = [shares[tokens] for tokens in pooled_slices(network.config.pool, prefix)]
    rounding = max(SAME, 8 * torch.finfo(x.dtype).eps)
    return all(bool(run.max() - run.min() <= rounding * run.max()) for run in runs)


def reaches(network: TracedViT, images: Tensor, wanted: Callable[[Trace], list[Tensor]]) -> bool:
    """Whether a gradient of the logits reaches any of the wanted parts of a pass."""
    with torch.inference_mode(False), torch.enable_grad():
        logits = network(images.detach().clone().requires_grad_(), trace := Trace(record_tokens=True))
        parts = [x for x in wanted(trace) if x.requires_grad and logits.requires_grad]
        slopes = torch.autograd.grad(_mixed(logits).sum(), parts, materialize_grads=True) if parts else ()
        return any(bool(slope.any()) for slope in slopes)


def find_pool(gradient: Tensor, num_prefix_tokens: int) -> Pool:
    """What the head reads, from ``head_gradient``; ``PresetError`` if it reads others of the prefix than the first."""
    size = gradient.norm(dim=1)
    prefix, patches = size[:num_prefix_tokens], size[num_prefix_tokens:]
    if not patches.any():
        if prefix[2:].any() or not prefix[:1].any():
            raise PresetError(
                "The head of this network reads a token that is not its first: put its class token first."
            )
        return "cls+next" if prefix[1:].any() else "cls"
    if not prefix.any():
        return "mean"
    if prefix[1:].any() and not prefix.all():
        raise PresetError("The head of this network reads some of the tokens beside its patches, not the first alone.")
    # A mean of all tokens reads the class token like any other; beside a mean of the patches it counts much more.
    return "all" if prefix[0] < 10 * patches.mean() else "cls+mean"


@torch.no_grad()
def reads_patches_alike(network: TracedViT, output: Any) -> bool:
    """Whether patches may be missing: the head reads some as it reads all if all are one, and in any order."""
    x, prefix, pool = network.structure.unpack(output), network.config.num_prefix_tokens, network.config.pool
    first, patches = x.split([prefix, x.shape[1] - prefix], 1)
    same = patches[:, -1:].expand_as(patches)
    alike = same[:, :1].expand_as(first) if pool == "all" else first  # which would count more beside fewer patches
    few, fewer = torch.cat([alike, same[:, :1]], 1), torch.cat([alike, same[:, 1:]], 1)
    pairs = (few, torch.cat([alike, same], 1)), (fewer, few), (torch.cat([first, patches.flip(1)], 1), x)
    try:
        gradient = head_gradient(network, network.structure.pack(x[:, :-1], output))
        if patches.shape[1] > 1 and find_pool(gradient, prefix) != pool:
            return False
        heads = [(network.forward_head(some), network.forward_head(others)) for some, others in pairs if some.shape[1]]
    except Exception:  # whatever a head raises that needs a token for each patch
        return False
    return all(_is_same(found, expected) for found, expected in heads)


def _is_same(found: Tensor, expected: Tensor) -> bool:
    rounding = max(SAME, 8 * torch.finfo(found.dtype).eps)
    return bool((found - expected).float().abs().max() <= rounding * expected.float().abs().max().clamp_min(1e-3))


@torch.no_grad()
def can_leave_out(network: TracedViT, noise: Tensor) -> bool:
    """Whether a pass without the tokens of some patches gives what masking them gives."""
    p, (height, width) = network.patch_size, network.image_size
    kept = torch.arange(0, (height // p) * (width // p), 2, device=noise.device)[None]
    masked = network(noise, kept_patches=kept)
    network.leaves_out = True
    try:
        return _is_same(network(noise, kept_patches=kept), masked)
    except Exception:  # of blocks that need all tokens
        return False


@torch.no_grad()
def is_flexible(network: TracedViT) -> bool:
    """Whether a pass on a picture of another shape has a token for each of its patches."""
    c, trace, (height, width) = network.config, Trace(), network.image_size
    shape = 1, c.in_channels, height, width - network.patch_size
    try:
        network(torch.zeros(shape, device=network.device, dtype=network.dtype), trace)
    except Exception:  # whatever a network raises for it
        return False
    return trace.num_tokens == c.num_prefix_tokens + trace.grid[0] * trace.grid[1]
