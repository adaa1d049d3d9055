"""Any Vision Transformer behind one interface: its attention recorded or replaced, its patches left out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.model.config import ViTConfig
from vit_demo.model.pooling import pooled_slices
from vit_demo.model.resample import Resampled, num_bytes
from vit_demo.scores import Scores, to_scores
from vit_demo.trace.intervention import NOTHING
from vit_demo.trace.one_pass import AttentionFn, Pass
from vit_demo.trace.outputs import Undo, finite, logits_of
from vit_demo.trace.reasons import NO_PROJECTION, NOT_SEEN
from vit_demo.trace.running import KeptGradients, in_eval, keep_order, parameters_of, replacing, skipping_in
from vit_demo.trace.structure import Structure
from vit_demo.trace.trace import Trace

OTHER_PATCHES = "This network has patches of {} pixels: leave patch_size out."
READ_AT_ONCE = 64
"""Patches that a head reads in one pass, each a sequence of its own."""
SCALES = ("ls", "ls1", "layer_scale1", "gamma_1", "lambda_1")
"""Names that timm and transformers give the scale of the attention branch (Touvron et al., 2021)."""


class PassOptions(TypedDict, total=False):
    """What functions that run a network pass on to ``TracedViT.forward``, which describes it."""

    patch_size: int | None
    kept_patches: Tensor | None


class TracedViT(nn.Module):
    """A Vision Transformer of this package, timm, transformers, torchvision or one's own, as it is; see ``adapt``.

    The network stays where it is and as it is: hooks are there only while a pass runs, in eval mode.

    Attributes:
        module: The network.
        config: Its shape; what has no counterpart in ``ViTConfig`` is left out.
        structure: The names of its parts.
        patch_size: In pixels; where ``forward`` is given none.
        leaves_out: Whether dropped patches leave the sequence. Otherwise no token attends to them, and they are left
            out after the last block: as exact, where positions are part of attention.
        scores: What its logits become wherever probabilities are measured; see ``vit_demo.scores``.
        already: What made its outputs probabilities, so that logits are what that was given; empty to leave them.
        intervention: What is changed in each of its passes.
        is_own: Whether it is a network of this package (``OwnViT``), each of whose operations is known.
    """

    is_own = False
    intervention = NOTHING

    def __init__(self, module: nn.Module, config: ViTConfig, structure: Structure) -> None:
        super().__init__()
        self.module, self.config, self.structure = module, config, structure
        self.patch_size, self.leaves_out = config.patch_size, structure.leaves_out
        self.training = module.training
        self.scores: Scores = "softmax"
        self.already = structure.already

    def forward(
        self,
        images: Tensor,
        trace: Trace | None = None,
        *,
        patch_size: int | None = None,
        kept_patches: Tensor | None = None,
        attention_fn: AttentionFn | None = None,
        silent: Tensor | None = None,
    ) -> Tensor:
        """Classifies images whose sides are multiples of the patch size.

        Args:
            images: ``[B, C, height, width]``, normalised.
            trace: If given, filled with what the pass computes in every block.
            patch_size: In pixels; ``self.patch_size`` by default, which a network of another library keeps.
            kept_patches: ``[B, K]`` int64: the patches that enter the sequence, counted row by row; all by default.
                Each keeps the position it has in the whole grid.
            attention_fn: Computes ``softmax(q k^T / sqrt(d)) v`` in place of the network's own kernel, for a backward
                of its own.
            silent: bool ``[B, blocks, H]``: heads that are silent in each image, beside those of ``intervention``.

        Returns:
            Logits ``[B, num_classes]``, or the pooled vector of a network without classes.

        Raises:
            PresetError: If the network has no such patch size, or no attention is seen.
        """
        p = self.patch_size if patch_size is None else patch_size
        options = self.options(images, p)
        if kept_patches is not None and not self.structure.drops:
            raise PresetError("Patches cannot be removed from this network: its head needs a token for each.")
        if trace is not None:
            trace.start((images.shape[2] // p, images.shape[3] // p), self.config.num_prefix_tokens, kept_patches)
            trace.together = self.calls_per_block
        prefix, kept = self.config.num_prefix_tokens, None
        if kept_patches is not None:  # the tokens of the sequence, prefix included
            first = torch.arange(prefix, device=kept_patches.device).expand(len(kept_patches), -1)
            kept = torch.cat([first, kept_patches + prefix], 1)
        parts = self.module, self.structure, len(images), trace, kept, self.leaves_out, attention_fn
        running = Pass(*parts, self.intervention, silent, self.added_by_heads)
        with in_eval(self.module, in_one_mode=self.is_own), running:
            logits = self._logits(images.to(self.dtype), options)
        if not running.count and not (trace and trace.q) and (trace is not None or attention_fn):
            raise PresetError(NOT_SEEN)
        return logits

    def forward_head(self, x: Tensor) -> Tensor:
        """What the network makes of the tokens ``[B, N, D]`` after its last block: its norm, pooling and head."""
        c = self.config
        blank = x.new_zeros(len(x), c.in_channels, *self.image_size, dtype=self.dtype)
        with skipping_in(self.module), in_eval(self.module), self._skipping(x.to(self.dtype)):
            return self._logits(blank, self.options(blank, self.patch_size))

    def read_patches(self, x: Tensor) -> Tensor:
        """What the head makes of each patch's token, as if that token were all that it reads.

        A head that reads two vectors, the class token and another, gets the class token's own for the first.

        Args:
            x: One image's last tokens ``[T, D]``, prefix included.

        Returns:
            Logits ``[N, K]``.
        """
        prefix = self.config.num_prefix_tokens
        alone = x[prefix:, None].expand(-1, prefix + 1, -1)  # as if all tokens were this one
        if len(pooled_slices(self.config.pool, prefix)) == 2:
            alone = torch.cat([x[:1].expand(len(alone), 1, -1), alone[:, 1:]], 1)
        return torch.cat([self.forward_head(part) for part in alone.split(READ_AT_ONCE)])

    def _logits(self, images: Tensor, options: dict[str, Any]) -> Tensor:
        """The logits in what the network returns, or those behind its probabilities."""
        made_by = self.already if self.already in ("softmax", "sigmoid") else ""
        keeps = KeptGradients() if self.structure.keeps_gradients else nullcontext()
        with Undo() if made_by else nullcontext() as undo, keeps:
            found = logits_of(self.module(images, **options), self.structure.output)
        found = undo.logits(found, made_by) if undo else found
        return found if self.is_own else finite(found)

    def options(self, images: Tensor, patch_size: int) -> dict[str, Any]:
        """What the network gets beside the images ``[B, C, height, width]``, if it is one of transformers.

        ``PresetError`` if it has no such patch size.
        """
        if patch_size != self.patch_size:
            raise PresetError(OTHER_PATCHES.format(self.patch_size))
        found = keep_order(self.module, images, self.patch_size)
        if images.shape[2:] != self.image_size and "interpolate_pos_encoding" in parameters_of(self.module):
            found["interpolate_pos_encoding"] = True
        return found

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the pictures that the network was made for."""
        return self.structure.size or (self.config.image_size, self.config.image_size)

    def to_scores(self, logits: Tensor, *, log: bool = False) -> Tensor:
        """The probabilities of logits ``[..., K]``, or their logarithms; see ``scores``."""
        return to_scores(logits, self.scores, log=log)

    def final_norm(self, x: Tensor) -> Tensor:
        """The norm that the network applies to its last tokens ``[..., D]``, if a module does."""
        return self.module.get_submodule(self.structure.norm)(x.to(self.dtype)) if self.structure.norm else x

    def output_projection(self, block: int) -> Tensor:
        """The linear map from each head's output to what the block adds to the tokens, its scale included.

        Returns:
            ``[H, d, D]``.

        Raises:
            PresetError: If what a block adds is not what one linear map gives.
        """
        name = self._projection(block)
        if not name:
            raise PresetError(NO_PROJECTION)
        return self._scaled(name).T.unflatten(0, (self.config.num_heads, -1))  # [H * d, D] -> [H, d, D]

    def output_bias(self, block: int) -> Tensor:
        """The bias ``[D]`` of that linear map, its scale included; 0 where it has none."""
        name = self._projection(block)
        bias = name.removesuffix("weight") + "bias"
        if not name.endswith("weight") or bias not in dict(self.module.named_parameters()):
            return torch.zeros(self.output_projection(block).shape[2], dtype=torch.float32, device=self.device)
        return self._scaled(bias)

    def added_by_heads(self, block: int, out: Tensor) -> Tensor:
        """What heads that give ``[B, H, N, d]`` add to the tokens ``[B, N, D]``; ``PresetError`` as above."""
        weight, bias = self.output_projection(block).flatten(0, 1).T, self.output_bias(block)
        return F.linear(out.transpose(1, 2).flatten(2), weight.to(out.dtype), bias.to(out.dtype))

    def _projection(self, block: int) -> str:
        """The name of the weight of a block's output projection; empty if there is none."""
        number, projections = range(self.config.depth)[block], self.structure.projections
        return projections[number] if number < len(projections) else ""

    def _scaled(self, name: str) -> Tensor:
        """The weight ``[D, H * d]`` or bias ``[D]`` of a projection, times the scale of its block or branch."""
        weight: Tensor = self.module.get_parameter(name)
        parts = name.split(".")[:-1]
        for around in (self.module.get_submodule(".".join(parts[:i])) for i in range(1, len(parts))):
            for scale in (getattr(around, one, None) for one in SCALES):
                tensors = [scale] if isinstance(scale, Tensor) else scale.parameters() if scale is not None else ()
                for parameter in tensors:
                    weight = (parameter[:, None] if weight.dim() == 2 else parameter) * weight
        return weight

    def positions(self, grid: tuple[int, int]) -> tuple[str, Tensor] | None:
        """How positions are added, and those ``[rows * cols, D]`` of a grid; None where only a pass can tell."""
        return None

    def filters(self, patch_size: int) -> tuple[Tensor, Tensor | None] | None:
        """The filters ``[D, C, p, p]`` and biases ``[D]`` of the patches; None where only a pass can tell."""
        return None

    def resized(self, patch_size: int) -> TracedViT:
        """The network with another patch size: one of timm as a copy, by its own resampling (``set_input_size``).

        ``PresetError`` if the network cannot change its patch size.
        """
        if patch_size == self.patch_size:
            return self
        if not hasattr(self.module, "set_input_size"):
            raise PresetError(OTHER_PATCHES.format(self.patch_size))
        module: Any = copy.deepcopy(self.module)
        size = self.config.image_size // patch_size * patch_size
        with torch.no_grad():
            module.set_input_size(img_size=(size, size), patch_size=(patch_size, patch_size))
        return TracedViT(module, replace(self.config, image_size=size, patch_size=patch_size), self.structure)

    def keep_sizes(self) -> TracedViT:
        """Keeps the kernels and positions for other sizes: of a network of this package whose weights will stay."""
        for kept in self._resampled:
            kept.keep()
        return self

    @property
    def dtype(self) -> torch.dtype:
        """The type of most of the network's weights."""
        sizes = Counter[torch.dtype]()
        for p in self.module.parameters():
            sizes[p.dtype] += p.numel() * p.is_floating_point()
        return max(sizes, key=sizes.__getitem__, default=torch.float32)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    @property
    def blocks(self) -> list[nn.Module]:
        """The blocks with attention, in their order."""
        return [self.module.get_submodule(name) for name in self.structure.blocks]

    @property
    def head(self) -> nn.Module:
        """The last linear map that gives as many numbers as there are classes; an empty one without classes."""
        found = [one for one in self.module.modules() if isinstance(one, nn.Linear)]
        return next((one for one in reversed(found) if one.out_features == self.config.num_classes), nn.Identity())

    @property
    def num_bytes(self) -> int:
        """Memory of the network: parameters, and the kernels and positions kept for other sizes."""
        elsewhere: int = getattr(self.module, "num_bytes_elsewhere", 0)
        derived = [x for kept in self._resampled for x in kept.tensors]
        return num_bytes([*self.parameters(), *self.buffers(), *derived]) + elsewhere

    @property
    def _resampled(self) -> list[Resampled]:
        parts = (part for one in self.module.modules() for part in vars(one).values())
        return [part for part in parts if isinstance(part, Resampled)]

    @property
    def calls_per_block(self) -> int:
        """How many attentions each block computes from the same tokens: two or more in parallel branches, usually 1."""
        return max(1, self.config.depth // len(self.structure.blocks)) if self.structure.parallel else 1

    @property
    def shows_tokens(self) -> bool:
        """Whether the tokens between the blocks are seen."""
        return self.structure.shows_tokens

    def _skipping(self, x: Tensor) -> AbstractContextManager[None]:
        """In this thread, replaces all blocks by one that returns given tokens, and the patch embedding by zeros."""
        parts = self.blocks if self.shows_tokens else [self.module.get_submodule(self.structure.entry)]
        p = (self.patch_size, self.patch_size)
        embeddings = [one for one in self.module.modules() if isinstance(one, nn.Conv2d) and one.kernel_size == p]
        functions: list[tuple[nn.Module, Callable[..., Any]]] = [
            (part, lambda *_, **__: self.structure.pack(x, self.structure.container)) for part in parts
        ]

        def embed(images: Tensor) -> Tensor:
            rows, cols = (side // self.patch_size for side in images.shape[2:])
            return images.new_zeros(len(images), embeddings[0].out_channels, rows, cols)

        if len(embeddings) == 1 and embeddings[0].stride == p and embeddings[0].padding == (0, 0):
            functions.append((embeddings[0], embed))
        return replacing(functions)
