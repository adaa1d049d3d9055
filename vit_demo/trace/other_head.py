"""Another classifier head for a network, which stays as it is: what its own head reads, and a copy around another."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.model import ViT
from vit_demo.trace.outputs import logits_of
from vit_demo.trace.running import hooked, run_as
from vit_demo.trace.traced_vit import TracedViT

NO_TOKEN = "What the classifier of this network reads is not one vector: choose another to teach."
OTHER_WIDTH = "This classifier was taught for another network: teach this one anew."
ADDED = "taught_head"  # the name of a head that is added to a network of another library that has none


@torch.no_grad()
def read_token(network: TracedViT, pixels: Tensor, *, patch_size: int, kept_patches: Tensor | None = None) -> Tensor:
    """What the head reads of images ``[B, C, height, width]``: ``[B, D]``; without a head, the network's output.

    ``PresetError`` if the network's logits are not what its head gives for one such vector.
    """
    head, read = _head(network), list[Tensor]()
    with hooked([head], lambda _, args, __: read.append(args[0])):
        logits = network(pixels, patch_size=patch_size, kept_patches=kept_patches)
    if not network.config.num_classes and not network.is_own:
        return logits.float()
    if not read or read[-1].dim() != 2 or not torch.allclose(head(read[-1]), logits, rtol=1e-3, atol=1e-4):
        raise PresetError(NO_TOKEN)
    return read[-1].float()


def with_head(network: TracedViT, weight: Tensor, bias: Tensor) -> TracedViT:
    """The network with a linear head ``[K, D]``, ``[K]``, all else shared; ``PresetError`` if it does not fit."""
    count, dim = weight.shape
    head = nn.utils.skip_init(nn.Linear, dim, count, device=network.device, dtype=network.dtype).requires_grad_(False)
    head.weight.copy_(weight)
    head.bias.copy_(bias)
    before = _head(network)
    expected = network.config.num_features if network.is_own else getattr(before, "in_features", dim)
    if expected != dim:
        raise PresetError(OTHER_WIDTH)
    names = [name for name, one in network.module.named_modules() if one is before]
    other = replace_part(network, names[0] if names else ADDED, head, count)
    other.scores = "softmax"
    if not names:
        where = _Headed(head, network.structure.output)
        other.structure, other.already = replace(network.structure, output=where, has_head=True, already=""), ""
        vars(other.module)["num_classes"] = count  # 0 in timm's
    if network.is_own:
        vars(other.module)["config"] = other.config
    return other


@dataclass(frozen=True)
class _Headed:
    """The logits that a head makes of what a network without one returns."""

    head: nn.Linear
    where: Any

    def __call__(self, output: Any) -> Tensor:
        token = logits_of(output, self.where)
        if token.shape[1] != self.head.in_features:
            raise PresetError(OTHER_WIDTH)
        return cast(Tensor, self.head(token))


def _head(network: TracedViT) -> nn.Module:
    """The module that gives the logits: the words of a network of pictures and text, or a linear map."""
    if network.is_own:
        return cast(ViT, network.module).head
    words = getattr(network.module, "compare", None)
    return words if isinstance(words, nn.Module) else network.head


def replace_part(network: TracedViT, name: str, part: nn.Module, num_classes: int) -> TracedViT:
    """The network with another part, after which it has so many classes; all other parts are the same, not copies."""
    other = cast(TracedViT, _replaced(network, ["module", *name.split(".")], part))
    other.config = replace(network.config, num_classes=num_classes)
    run_as(other.module, network.module)
    return other


def _replaced(module: nn.Module, path: list[str], new: nn.Module) -> nn.Module:
    """A copy of a module in which one part is another; the parts around it are copied, all others are shared."""
    twin = copy.copy(module)
    twin.__dict__ = {name: copy.copy(value) if isinstance(value, dict) else value for name, value in vars(twin).items()}
    name, *rest = path
    twin._modules[name] = _replaced(module.get_submodule(name), rest, new) if rest else new
    return twin
