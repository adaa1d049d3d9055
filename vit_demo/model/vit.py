"""A Vision Transformer to be read from top to bottom (Dosovitskiy et al., 2020, https://arxiv.org/abs/2010.11929).

Parameter names are timm's, so that timm's checkpoints load here and ours load there. In the shape comments B is the
batch, N the tokens, D their width, H the heads and d = D / H.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model.config import ViTConfig
from vit_demo.model.memory import num_bytes
from vit_demo.model.per_head import PerHeadQKV
from vit_demo.model.pooling import pool_tokens
from vit_demo.model.pos_embed import sincos_pos_embed, sincos_pos_embed_2d
from vit_demo.model.resample import SizeCache, resample_patch_embed, resample_pos_embed
from vit_demo.model.trace import Trace

AttentionFn = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From q, k and v, each ``[B, H, N, d]``, to ``softmax(q k^T / sqrt(d)) v``."""


class PatchEmbed(nn.Module):
    """Maps each patch to a token by one linear map, whose kernel is stored once and resampled for other patch sizes."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        p = config.patch_size
        self.proj = nn.Conv2d(config.in_channels, config.embed_dim, kernel_size=p, stride=p)
        self.kernels = SizeCache()

    def forward(self, images: Tensor, patch_size: int) -> Tensor:
        kernel = self.proj.weight
        if patch_size != self.proj.kernel_size[0]:
            kernel = self.kernels.get(kernel, patch_size, resample_patch_embed)
        x = F.conv2d(images, kernel, self.proj.bias, stride=patch_size)  # [B, D, rows, cols]
        return x.flatten(2).transpose(1, 2)  # [B, rows * cols, D]


class Attention(nn.Module):
    """Multi-head self-attention, ``softmax(q k^T / sqrt(d)) v``, on the fused kernel."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.dropout = config.dropout
        if config.projection == "per_head":
            self.qkv: nn.Module = PerHeadQKV(config)
            self.proj: nn.Module = nn.Identity()
        else:
            self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim, bias=config.qkv_bias)
            self.proj = nn.Linear(config.embed_dim, config.embed_dim)

    def forward(
        self,
        x: Tensor,
        trace: Trace | None = None,
        attention_fn: AttentionFn | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Mixes tokens ``[B, N, D]``; ``mask`` ``[B, 1 | H, N, N]`` is true where a token may attend."""
        qkv = self.qkv(x).unflatten(2, (3, self.num_heads, -1))  # [B, N, 3, H, d]
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [B, H, N, d]
        if trace is not None:
            trace.record_qkv(q, k, v)
        x = attention_fn(q, k, v) if attention_fn is not None else self._attention(q, k, v, mask)
        x = x.transpose(1, 2).flatten(2)  # [B, H, N, d] -> [B, N, D]
        return F.dropout(self.proj(x), self.dropout, self.training)

    def _attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if self.training and q.device.type == "cpu":
            # The same product written out: the backward of the CPU's fused kernel is several times slower.
            scores = (q * q.shape[-1] ** -0.5) @ k.mT
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            return scores.softmax(-1) @ v
        return F.scaled_dot_product_attention(q, k, v, mask)


class MLP(nn.Module):
    """Two linear maps with an exact GELU between."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        hidden = int(config.embed_dim * config.mlp_ratio)
        self.fc1 = nn.Linear(config.embed_dim, hidden)
        self.fc2 = nn.Linear(hidden, config.embed_dim)
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        x = F.dropout(F.gelu(self.fc1(x)), self.dropout, self.training)  # [B, N, hidden]
        return F.dropout(self.fc2(x), self.dropout, self.training)  # [B, N, D]


class LayerScale(nn.Module):
    """One learned factor a channel on a residual branch."""

    def __init__(self, dim: int, initial: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), initial))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Block(nn.Module):
    """``x + attention(norm(x))``, then ``x + mlp(norm(x))``.

    Args:
        config: The network's shape.
        index: Which block this is, from 0; it decides the share of dropped paths and the names in a trace.
    """

    def __init__(self, config: ViTConfig, index: int = 0) -> None:
        super().__init__()
        dim, scale = config.embed_dim, config.layer_scale
        self.name = f"block{index:02d}"
        self.drop_path = config.drop_path * index / max(1, config.depth - 1)  # rises linearly from 0
        self.norm1 = nn.LayerNorm(dim, config.norm_eps)
        self.attn = Attention(config)
        self.ls1 = LayerScale(dim, scale) if scale is not None else nn.Identity()
        self.norm2 = nn.LayerNorm(dim, config.norm_eps)
        self.mlp = MLP(config)
        self.ls2 = LayerScale(dim, scale) if scale is not None else nn.Identity()

    def forward(self, x: Tensor, trace: Trace | None = None, attention_fn: AttentionFn | None = None) -> Tensor:
        x = x + self._drop_branch(self.ls1(self.attn(self.norm1(x), trace, attention_fn)))
        _record(trace, f"{self.name}/+sa", x)
        x = x + self._drop_branch(self.ls2(self.mlp(self.norm2(x))))
        return _record(trace, f"{self.name}/+mlp", x)

    def _drop_branch(self, branch: Tensor) -> Tensor:
        """Drops the branch of some samples of a training batch, and scales the others so that the mean stays."""
        if not self.training or self.drop_path == 0.0:
            return branch
        keep = 1.0 - self.drop_path
        return branch * branch.new_empty(len(branch), 1, 1).bernoulli_(keep).div_(keep)


class ViT(nn.Module):
    """The whole network.

    Args:
        config: Its shape.

    Attributes:
        config: As given.
        patch_size: The patch size where ``forward`` is given none; the stored one unless set otherwise.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config, self.patch_size = config, config.patch_size
        dim = config.embed_dim
        self.patch_embed = PatchEmbed(config)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if config.class_token else None
        self.reg_token = nn.Parameter(torch.zeros(1, config.num_registers, dim)) if config.num_registers else None
        self.num_pos_embed_prefix = config.num_prefix_tokens if config.pos_embed_prefix else 0
        length = self.num_pos_embed_prefix + config.stored_grid**2
        self.pos_embed = nn.Parameter(torch.zeros(1, length, dim)) if config.pos_embed == "learned" else None
        self.pos_embeds = SizeCache()
        self.blocks = nn.ModuleList(Block(config, index) for index in range(config.depth))
        norm = nn.LayerNorm(dim, config.norm_eps) if config.final_norm else nn.Identity()
        # timm's two names: the norm stands before the pooling of a class token, after the pooling of a mean.
        before = config.pool.startswith("cls")
        self.norm = norm if before else nn.Identity()
        self.fc_norm = nn.Identity() if before else norm
        self.head = nn.Linear(config.num_features, config.num_classes) if config.num_classes else nn.Identity()
        if not self.patch_embed.proj.weight.is_meta:  # there, torch would import its compiler, which takes seconds
            self._init_weights()

    def forward(
        self,
        images: Tensor,
        trace: Trace | None = None,
        *,
        patch_size: int | None = None,
        kept_patches: Tensor | None = None,
        attention_fn: AttentionFn | None = None,
    ) -> Tensor:
        """Classifies images of any size whose sides are multiples of the patch size.

        Args:
            images: ``[B, C, height, width]``, normalised.
            trace: If given, filled with what it records of every block.
            patch_size: In pixels; ``self.patch_size`` by default.
            kept_patches: ``[B, K]`` int64: the patches, counted row by row, that enter the sequence; all by default.
                Each keeps the position it has in the whole grid. Fewer tokens cost less than their share of the time.
            attention_fn: Computes ``softmax(q k^T / sqrt(d)) v`` in place of the fused kernel, for a backward of its
                own.

        Returns:
            Logits ``[B, num_classes]``, or the pooled vector ``[B, num_features]`` of a model without classes.

        Raises:
            ValueError: If the patch size does not divide the image.
        """
        x = self.forward_features(
            images, trace, patch_size=patch_size, kept_patches=kept_patches, attention_fn=attention_fn
        )
        pooled = _record(trace, "pre_logits", self.forward_head(x, pre_logits=True))
        return _record(trace, "logits", self.head(pooled))

    def forward_features(
        self,
        images: Tensor,
        trace: Trace | None = None,
        *,
        patch_size: int | None = None,
        kept_patches: Tensor | None = None,
        attention_fn: AttentionFn | None = None,
    ) -> Tensor:
        """The tokens after the last block and ``norm``: ``[B, N, D]``. Arguments as in ``forward``."""
        p = self.patch_size if patch_size is None else patch_size
        height, width = images.shape[2:]
        if p < 1 or height % p or width % p:
            raise ValueError(f"A patch size of {p} does not divide an image of {height} x {width} pixels.")
        grid = (height // p, width // p)
        if trace is not None:
            trace.start(grid, self.config.num_prefix_tokens, kept_patches)
        x = self.embed(images, grid, p, trace)  # [B, N, D]
        if kept_patches is not None:
            prefix, patches = x.split([self.config.num_prefix_tokens, grid[0] * grid[1]], dim=1)
            patches = patches.gather(1, kept_patches[:, :, None].expand(-1, -1, patches.shape[2]))  # [B, K, D]
            x = torch.cat([prefix, patches], dim=1)
        _record(trace, "with_posemb", x)
        for block in self.blocks:
            x = block(x, trace, attention_fn)
        return _record(trace, "encoded", self.norm(x))

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Pools the tokens ``[B, N, D]`` that ``forward_features`` returns and classifies them.

        Args:
            x: The tokens.
            pre_logits: Whether to return the pooled vector ``[B, num_features]``, not the logits ``[B, num_classes]``.
        """
        x = pool_tokens(x, self.config.pool, self.config.num_prefix_tokens)
        x = self.fc_norm(x)
        return x if pre_logits else self.head(x)

    def embed(self, images: Tensor, grid: tuple[int, int], patch_size: int, trace: Trace | None = None) -> Tensor:
        """Patch embedding, prefix tokens and positions: ``[B, num_prefix_tokens + rows * cols, D]``."""
        x = _record(trace, "stem", self.patch_embed(images, patch_size))  # [B, rows * cols, D]
        prefix = [token.expand(len(x), -1, -1) for token in (self.cls_token, self.reg_token) if token is not None]
        pos_embed = self.pos_embed_for(grid).to(x.dtype)
        if self.config.pos_embed_prefix:
            x = torch.cat([*prefix, x], dim=1) + pos_embed
        else:
            x = torch.cat([*prefix, x + pos_embed], dim=1)
        return F.dropout(x, self.config.dropout, self.training)

    def pos_embed_for(self, grid: tuple[int, int]) -> Tensor:
        """Positions ``[1, rows * cols (+ num_prefix_tokens), D]`` for a grid, resampled or from the formula."""
        if self.pos_embed is None:
            device = self.patch_embed.proj.weight.device
            return sincos_pos_embed(self.num_pos_embed_prefix + grid[0] * grid[1], self.config.embed_dim).to(device)
        if grid == (self.config.stored_grid,) * 2:
            return self.pos_embed
        return self.pos_embeds.get(self.pos_embed, grid, self._resample_pos_embed)

    def _resample_pos_embed(self, table: Tensor, grid: tuple[int, int]) -> Tensor:
        return resample_pos_embed(table, grid, self.num_pos_embed_prefix)

    @property
    def num_bytes(self) -> int:
        """Memory of the network: parameters, and the kernels and positions cached for other sizes."""
        derived = (*self.patch_embed.kernels.tensors, *self.pos_embeds.tensors)
        return num_bytes([*self.parameters(), *self.buffers(), *derived])

    def _init_weights(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)  # the usual std of 0.02 is far too small for narrow networks
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in (self.cls_token, self.reg_token, self.pos_embed):
            if table is not None:
                nn.init.trunc_normal_(table, std=0.02)
        if self.pos_embed is not None:
            # Neighbours start out alike, so that a coarser grid's mean of them still means something.
            waves = sincos_pos_embed_2d(self.config.stored_grid, self.config.embed_dim)
            self.pos_embed.data[:, self.num_pos_embed_prefix :] += waves


def _record(trace: Trace | None, name: str, x: Tensor) -> Tensor:
    """Returns ``x``, which a trace, where there is one, keeps under the name if it records tokens."""
    if trace is not None:
        trace.record(name, x)
    return x
