"""Other people's networks with the interface of ``ViT``, so that every method, test and feature takes them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.trace import AttentionFn, Recording
from vit_demo.model.config import ViTConfig
from vit_demo.model.memory import num_bytes
from vit_demo.trace.one_pass import Pass
from vit_demo.trace.probe import NOT_SEEN, Probe, find_blocks, find_patch_size, find_pool

OUTPUTS = ("logits", "image_embeds", "pooler_output")
"""Fields of transformers' outputs, the first that is there; the second and third are no classes."""
SCALES = ("ls1", "layer_scale1", "gamma_1", "lambda_1")
"""Names that timm and transformers give the scale of the attention branch (Touvron et al., 2021)."""
MAX_PREFIX = 17
"""Tokens before the patches: a class token and sixteen registers, more than any published network has."""
SAME = 1e-3
"""Largest difference of logits, as a share of their size, between leaving tokens out and masking them."""


class TracedViT(nn.Module):
    """A Vision Transformer of timm, transformers, torchvision or one's own, as it is. Made by ``adapt``.

    It stays where it is and as it is: hooks are there only while a pass runs, one pass at a time, in eval mode.

    Attributes:
        module: The network.
        config: Its shape; what has no counterpart in ``ViTConfig`` is left out.
        patch_size: In pixels.
        leaves_out: Whether dropped patches leave the sequence. Otherwise no token attends to them, and they are left
            out after the last block: as exact, where positions are part of attention.
    """

    def __init__(self, module: nn.Module, config: ViTConfig, blocks: list[str], entry: str, end: str) -> None:
        super().__init__()
        self.module, self.config, self.patch_size = module, config, config.patch_size
        self.leaves_out = False
        self.norm = self.fc_norm = nn.Identity()  # the network's own are part of ``forward_head``
        self._blocks, self._entry, self._end = blocks, entry, end
        self._projections: dict[int, Tensor] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.RLock()

    def forward(
        self,
        images: Tensor,
        trace: Recording | None = None,
        *,
        patch_size: int | None = None,
        kept_patches: Tensor | None = None,
        attention_fn: AttentionFn | None = None,
    ) -> Tensor:
        """As ``TracedViT.forward``; the patch size is the network's own.

        Raises:
            PresetError: If another patch size is asked for, or no attention is seen.
        """
        if patch_size not in (None, self.patch_size):
            raise PresetError(f"This network has patches of {self.patch_size} pixels: leave patch_size out.")
        grid = images.shape[2] // self.patch_size, images.shape[3] // self.patch_size
        if trace is not None:
            trace.start(grid, self.config.num_prefix_tokens, kept_patches)
        with self._lock, _in_eval(self.module), Pass(self, trace, kept_patches, attention_fn) as running:
            logits = logits_of(self.module(images.to(self.dtype)))
        if not running.count:
            raise PresetError(NOT_SEEN)
        return logits

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """What the network makes of the tokens ``[B, N, D]`` after its last block: its norm, pooling and head."""
        c = self.config
        blank = x.new_zeros(len(x), c.in_channels, c.image_size, c.image_size, dtype=self.dtype)
        with self._lock, _in_eval(self.module), self._skipping(x.to(self.dtype)):
            return logits_of(self.module(blank))

    @property
    def dtype(self) -> torch.dtype:
        """Of the network's numbers."""
        return next((p.dtype for p in self.module.parameters() if p.is_floating_point()), torch.float32)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    @property
    def blocks(self) -> list[nn.Module]:
        """The blocks with attention, in their order."""
        return [self.module.get_submodule(name) for name in self._blocks]

    @property
    def head(self) -> nn.Module:
        """The last linear map that gives as many numbers as there are classes; an empty one without classes."""
        found = [one for one in self.module.modules() if isinstance(one, nn.Linear)]
        return next((one for one in reversed(found) if one.out_features == self.config.num_classes), nn.Identity())

    @property
    def num_bytes(self) -> int:
        """Memory of the network."""
        return num_bytes([*self.parameters(), *self.buffers()])

    def final_norm(self, x: Tensor) -> Tensor:
        """The norm that the network applies to its last tokens ``[..., D]``, if a module does."""
        return self.module.get_submodule(self._norm)(x.to(self.dtype)) if self._norm else x

    _norm = ""

    @property
    def calls_per_block(self) -> int:
        """How many attentions each block computes from the same tokens: two or more in parallel branches, usually 1."""
        return max(1, self.config.depth // len(self._blocks))

    @property
    def shows_tokens(self) -> bool:
        """Whether the tokens between the blocks are seen: each block is a module that gets and returns them."""
        return self._entry == self._blocks[0] and self._end == self._blocks[-1]

    def output_projection(self, block: int) -> Tensor:
        """As ``methods.norm_attention.output_projection``: ``[H, d, D]``.

        Raises:
            PresetError: If no linear map follows the attention of a block.
        """
        number = range(self.config.depth)[block]
        if number not in self._projections:
            raise PresetError("This network has no output projection after attention, which this method needs.")
        weight = self._projections[number]
        part = self.blocks[number] if self.config.depth == len(self._blocks) else None
        for name in SCALES:
            scale = getattr(part, name, None)
            for parameter in [scale] if isinstance(scale, Tensor) else scale.parameters() if scale is not None else ():
                weight = parameter[:, None] * weight
        return weight.T.unflatten(0, (self.config.num_heads, -1))  # [H * d, D] -> [H, d, D]

    @contextmanager
    def _skipping(self, x: Tensor) -> Iterator[None]:
        """Replaces all blocks by one that returns given tokens."""
        parts = self.blocks if self.shows_tokens else [self.module.get_submodule(self._entry)]

        def returned(*_: Any, **__: Any) -> Any:
            return (x,) if self._in_tuples else x

        try:
            for part in parts:
                part.forward = returned
            yield
        finally:
            for part in parts:
                part.__dict__.pop("forward", None)

    _in_tuples = False
    """Whether a block returns its tokens within a tuple."""


def adapt(module: nn.Module, image_size: int, *, patch_size: int | None = None, in_channels: int = 3) -> TracedViT:
    """Runs a network a few times on noise and finds what ``TracedViT`` needs to know of it.

    Args:
        module: Takes images ``[B, C, height, width]``; gives logits ``[B, K]``, or an output of transformers.
        image_size: Side of its input, in pixels.
        patch_size: In pixels; found for None.
        in_channels: Of the images.

    Raises:
        PresetError: If it cannot be run on such images, or its attention, patches or tokens are not found.
    """
    parameter = next(module.parameters(), torch.zeros(()))
    noise = torch.randn(1, in_channels, image_size, image_size, generator=torch.Generator().manual_seed(0))
    noise = noise.to(parameter)
    probe = Probe()
    with torch.no_grad(), _in_eval(module), probe.watching(module), probe:
        try:
            output = module(noise)
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            size = f"{in_channels} x {image_size} x {image_size}"
            raise PresetError(f"This network does not take images of {size}: pass a tensor or transform=.") from error
    if not probe.paths:
        raise PresetError(NOT_SEEN)
    blocks, entry, end = find_blocks(probe)
    num_tokens = probe.shapes[0][2]
    patch = patch_size or find_patch_size(module, image_size, num_tokens)
    prefix = num_tokens - (image_size // patch) ** 2
    if not 0 <= prefix <= MAX_PREFIX or image_size % patch:
        raise PresetError(f"Patches of {patch} pixels do not give the {num_tokens} tokens of this network.")
    logits = logits_of(output)
    heads, dim = probe.shapes[0][1], probe.tokens[end][0].shape[2]
    config = ViTConfig(
        image_size=image_size,
        patch_size=patch,
        in_channels=in_channels,
        num_classes=logits.shape[1] if has_classes(module, output) else 0,
        embed_dim=dim if dim % heads == 0 else heads * probe.shapes[0][3],
        depth=len(probe.paths),
        num_heads=heads,
        pool="mean",
        class_token=False,
    )
    network = TracedViT(module, config, blocks, entry, end)
    network._projections = probe.projections
    network._norm = probe.norm_after(end)
    network._in_tuples = isinstance(probe.tokens[end][1], tuple)
    pool = _pool(network, probe.tokens[end][1], prefix)
    names = [name for name, _ in module.named_parameters()]
    has_class_token = prefix > 0 and (pool != "mean" or any("cls" in name or "class_" in name for name in names))
    fields = {"pool": pool, "class_token": has_class_token, "num_registers": prefix - has_class_token}
    network.config = ViTConfig(**config.to_dict() | fields)
    network.leaves_out = _can_leave_out(network, noise)
    return network


def has_classes(module: nn.Module, output: Any) -> bool:
    """Whether the output are logits; timm's networks without classes return the pooled vector."""
    return getattr(module, "num_classes", 1) != 0 and (isinstance(output, Tensor) or hasattr(output, "logits"))


def logits_of(output: Any) -> Tensor:
    """The logits ``[B, K]``, or the pooled vector, in what a network returns.

    Raises:
        PresetError: If there is none.
    """
    found = output if isinstance(output, Tensor) else next((output[n] for n in OUTPUTS if n in output), None)
    if not isinstance(found, Tensor) or found.dim() != 2:
        raise PresetError("This network gives no logits [B, K]: wrap it in a module that does.")
    return found


def _pool(network: TracedViT, output: Any, num_prefix_tokens: int) -> Any:
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
    except (RuntimeError, ValueError, AssertionError):
        return False
    return bool((found - masked).abs().max() <= SAME * masked.abs().max().clamp_min(1e-3))


@contextmanager
def _in_eval(module: nn.Module) -> Iterator[None]:
    """Runs a network in eval mode; each of its modules is in its own mode again afterwards."""
    modes = [(one, one.training) for one in module.modules() if one.training]
    try:
        module.eval() if modes else None
        yield
    finally:
        for one, training in modes:
            one.training = training
