"""A Vision Transformer to be read from top to bottom (Dosovitskiy et al., 2020, https://arxiv.org/abs/2010.11929).

Parameter names are timm's, so that timm's checkpoints load here and ours load there. In the shape comments B is the
batch, N the tokens, D their width, H the heads and d = D / H.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model.config import ViTConfig
from vit_demo.model.memory import num_bytes
from vit_demo.model.positions import sincos_grid, sincos_positions
from vit_demo.model.resample import SizeCache, interpolate_positions, resample_kernel
from vit_demo.model.trace import Trace


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """Cuts images into flattened patches, row by row.

    Args:
        images: ``[B, C, rows * p, cols * p]``.
        patch_size: p, in pixels.

    Returns:
        ``[B, rows * cols, C * p * p]``; a patch is laid out channel by channel, as a convolution kernel is.
    """
    p = patch_size
    x = images.unflatten(3, (-1, p)).unflatten(2, (-1, p))  # [B, C, rows, p, cols, p]
    x = x.permute(0, 2, 4, 1, 3, 5)  # [B, rows, cols, C, p, p]
    return x.flatten(3).flatten(1, 2)


class PatchEmbedding(nn.Module):
    """Each patch to a D-dimensional token by one linear map; its kernel is stored once and serves every patch size."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        p = config.patch_size
        self.proj = nn.Conv2d(config.in_channels, config.embed_dim, kernel_size=p, stride=p)
        self.kernels = SizeCache()

    def forward(self, images: Tensor, patch_size: int) -> Tensor:
        kernel = self.kernels.get(self.proj.weight, patch_size, resample_kernel)
        x = F.conv2d(images, kernel, self.proj.bias, stride=patch_size)  # [B, D, rows, cols]
        return x.flatten(2).transpose(1, 2)  # [B, rows * cols, D]


class PerHeadMaps(nn.Module):
    """q, k and v maps that each see only their own head's slice of the token."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        heads, d = config.num_heads, config.head_dim
        bound = d**-0.5  # as torch.nn.Linear starts
        self.weight = nn.Parameter(torch.empty(3, heads, d, d).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(3, heads, d).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        heads, d = self.bias.shape[1:]
        x = x.unflatten(2, (heads, d))  # [B, N, H, d]
        x = torch.einsum("bnhi,chji->bnchj", x, self.weight) + self.bias  # [B, N, 3, H, d]
        return x.flatten(2)  # [B, N, 3 * D], the layout of a fused map


class Attention(nn.Module):
    """Multi-head self-attention, ``softmax(q k^T / sqrt(d)) v``, on the fused kernel."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.dropout = config.dropout
        if config.projection == "per_head":
            self.qkv: nn.Module = PerHeadMaps(config)
            self.proj: nn.Module = nn.Identity()
        else:
            self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim, bias=config.qkv_bias)
            self.proj = nn.Linear(config.embed_dim, config.embed_dim)

    def forward(self, x: Tensor, trace: Trace | None = None, mask: Tensor | None = None) -> Tensor:
        """Mixes tokens ``[B, N, D]``; ``mask`` ``[B, 1 | H, N, N]`` is true where a token may look."""
        qkv = self.qkv(x).unflatten(2, (3, self.num_heads, -1))  # [B, N, 3, H, d]
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [B, H, N, d]
        other = trace.attend if trace is not None else None
        x = other(q, k, v) if other is not None else self._attend(q, k, v, mask)
        if trace is not None:
            trace.add(q, k, v, x)
        x = x.transpose(1, 2).flatten(2)  # [B, H, N, d] -> [B, N, D]
        return F.dropout(self.proj(x), self.dropout, self.training)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
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
    """``x + attention(norm(x))``, then ``x + mlp(norm(x))``."""

    def __init__(self, config: ViTConfig, drop_path: float = 0.0) -> None:
        super().__init__()
        dim, scale = config.embed_dim, config.layer_scale
        self.norm1 = nn.LayerNorm(dim, config.norm_eps)
        self.attn = Attention(config)
        self.ls1 = LayerScale(dim, scale) if scale is not None else nn.Identity()
        self.norm2 = nn.LayerNorm(dim, config.norm_eps)
        self.mlp = MLP(config)
        self.ls2 = LayerScale(dim, scale) if scale is not None else nn.Identity()
        self.drop_path = drop_path

    def forward(self, x: Tensor, trace: Trace | None = None) -> Tensor:
        x = x + self._skip(self.ls1(self.attn(self.norm1(x), trace)))
        return x + self._skip(self.ls2(self.mlp(self.norm2(x))))

    def _skip(self, branch: Tensor) -> Tensor:
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
        patch_size: The patch size used when ``forward`` is told none; the stored one unless set otherwise.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config, self.patch_size = config, config.patch_size
        dim = config.embed_dim
        self.patch_embed = PatchEmbedding(config)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if config.class_token else None
        self.reg_token = nn.Parameter(torch.zeros(1, config.num_registers, dim)) if config.num_registers else None
        self.num_position_prefix = config.num_prefix if config.position_prefix else 0
        length = self.num_position_prefix + config.stored_grid**2
        self.pos_embed = nn.Parameter(torch.zeros(1, length, dim)) if config.position == "learned" else None
        self.position_tables = SizeCache()
        drops = [config.drop_path * i / max(1, config.depth - 1) for i in range(config.depth)]
        self.blocks = nn.ModuleList(Block(config, drop) for drop in drops)
        norm = nn.LayerNorm(dim, config.norm_eps) if config.final_norm else nn.Identity()
        # timm's two names: the norm stands before the pooling of a class token, after the pooling of a mean.
        before = config.pool.startswith("cls")
        self.norm = norm if before else nn.Identity()
        self.fc_norm = nn.Identity() if before else norm
        self.head = nn.Linear(config.head_width, config.num_classes) if config.num_classes else nn.Identity()
        self._initialise()

    def forward(
        self,
        images: Tensor,
        trace: Trace | None = None,
        *,
        patch_size: int | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        """Classifies images of any size whose sides are multiples of the patch size.

        Args:
            images: ``[B, C, height, width]``, normalised.
            trace: Filled with what it keeps of every block, where given.
            patch_size: In pixels; ``self.patch_size`` by default.
            keep: ``[B, K]`` int64: the patches, counted row by row, that enter the sequence; all by default. Each keeps
                the position it has in the whole grid. Fewer tokens cost less than their share of the time.

        Returns:
            Logits ``[B, num_classes]``, or the pooled token ``[B, head_width]`` of a model without classes.

        Raises:
            ValueError: If the patch size does not divide the image.
        """
        return self.head(self.pool(self.encode(images, trace, patch_size=patch_size, keep=keep)))

    def encode(
        self,
        images: Tensor,
        trace: Trace | None = None,
        *,
        patch_size: int | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        """The tokens after the last block and ``norm``: ``[B, N, D]``. Arguments as in ``forward``."""
        p = patch_size or self.patch_size
        height, width = images.shape[2:]
        if height % p or width % p:
            raise ValueError(f"A patch size of {p} does not divide an image of {height} x {width} pixels.")
        grid = (height // p, width // p)
        if trace is not None:
            trace.start(grid, self.config.num_prefix, keep)
        x = self.embed(images, grid, p)  # [B, N, D]
        if keep is not None:
            prefix, patches = x.split([self.config.num_prefix, x.shape[1] - self.config.num_prefix], dim=1)
            patches = patches.gather(1, keep[:, :, None].expand(-1, -1, patches.shape[2]))  # [B, K, D]
            x = torch.cat([prefix, patches], dim=1)
        if trace is not None:
            trace.add_tokens(x)
        for block in self.blocks:
            x = block(x, trace)
            if trace is not None:
                trace.add_tokens(x)
        return self.norm(x)

    def embed(self, images: Tensor, grid: tuple[int, int], patch_size: int) -> Tensor:
        """Patch embedding, prefix tokens and positions: ``[B, num_prefix + rows * cols, D]``."""
        x = self.patch_embed(images, patch_size)  # [B, rows * cols, D]
        prefix = [token.expand(len(x), -1, -1) for token in (self.cls_token, self.reg_token) if token is not None]
        positions = self.positions(grid).to(x.dtype)
        if self.config.position_prefix:
            x = torch.cat([*prefix, x], dim=1) + positions
        else:
            x = torch.cat([*prefix, x + positions], dim=1)
        return F.dropout(x, self.config.dropout, self.training)

    @property
    def num_bytes(self) -> int:
        """Memory of the network: parameters, and the kernels and positions remembered for other sizes."""
        derived = (*self.patch_embed.kernels.tensors, *self.position_tables.tensors)
        return num_bytes([*self.parameters(), *self.buffers(), *derived])

    def positions(self, grid: tuple[int, int]) -> Tensor:
        """Positions ``[1, rows * cols (+ num_prefix), D]`` for a grid, interpolated or from the formula."""
        if self.pos_embed is None:
            device = self.patch_embed.proj.weight.device
            return sincos_positions(self.num_position_prefix + grid[0] * grid[1], self.config.embed_dim).to(device)
        return self.position_tables.get(self.pos_embed, grid, self._interpolate)

    def _interpolate(self, table: Tensor, grid: tuple[int, int]) -> Tensor:
        return interpolate_positions(table, grid, self.num_position_prefix)

    def pool(self, tokens: Tensor) -> Tensor:
        """The one vector ``[B, head_width]`` that the head reads, from tokens ``[B, N, D]``."""
        if self.config.pool == "cls":
            return tokens[:, 0]
        if self.config.pool == "cls+next":
            return tokens[:, :2].flatten(1)
        mean = tokens[:, 0 if self.config.pool == "all" else self.config.num_prefix :].mean(1)
        if self.config.pool == "cls+mean":
            return torch.cat([tokens[:, 0], mean], dim=1)
        return self.fc_norm(mean)

    def _initialise(self) -> None:
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
            waves = sincos_grid(self.config.stored_grid, self.config.embed_dim)
            self.pos_embed.data[:, self.num_position_prefix :] += waves
