"""A Vision Transformer to be read from top to bottom (Dosovitskiy et al., 2020, https://arxiv.org/abs/2010.11929).

Parameter names are timm's, so that timm's checkpoints load here and ours load there. In the shape comments B is the
batch, N the tokens, D their width, H the heads and d = D / H.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model.config import ViTConfig
from vit_demo.model.initialization import init_weights, sincos_pos_embed
from vit_demo.model.per_head import PerHeadQKV
from vit_demo.model.pooling import pool_tokens
from vit_demo.model.resample import Resampled, resample_patch_embed, resample_pos_embed


class PatchEmbed(nn.Module):
    """Maps each patch to a token by one linear map, whose kernel is stored once and resampled for other patch sizes."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.proj = nn.Conv2d(config.in_channels, config.embed_dim, config.patch_size, stride=config.patch_size)
        self.kernels = Resampled()

    def forward(self, images: Tensor, patch_size: int) -> Tensor:
        kernel = self.proj.weight
        if patch_size != self.proj.kernel_size[0]:
            kernel = self.kernels.get(kernel, patch_size, resample_patch_embed)
        x = F.conv2d(images, kernel, self.proj.bias, stride=patch_size)  # [B, D, rows, cols]
        return x.flatten(2).transpose(1, 2)  # [B, rows * cols, D]


class ScaledDotProduct(nn.Module):
    """``softmax(q k^T / sqrt(d)) v``, on torch's fused kernel; each ``[B, H, N, d]``."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.num_heads, self.dropout = config.num_heads, config.dropout
        if config.projection == "per_head":
            self.qkv: nn.Module = PerHeadQKV(config)
            self.proj: nn.Module = nn.Identity()
        else:
            self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim, bias=config.qkv_bias)
            self.proj = nn.Linear(config.embed_dim, config.embed_dim)
        self.attend = ScaledDotProduct()

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(x).unflatten(2, (3, self.num_heads, -1))  # [B, N, 3, H, d]
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [B, H, N, d]
        x = self.attend(q, k, v)
        x = x.transpose(1, 2).flatten(2)  # [B, H, N, d] -> [B, N, D]
        return F.dropout(self.proj(x), self.dropout, self.training)


class MLP(nn.Module):
    """Two linear maps with an exact GELU between."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        hidden, self.dropout = int(config.embed_dim * config.mlp_ratio), config.dropout
        self.fc1 = nn.Linear(config.embed_dim, hidden)
        self.fc2 = nn.Linear(hidden, config.embed_dim)

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

    def __init__(self, config: ViTConfig, index: int = 0) -> None:
        super().__init__()
        dim, scale = config.embed_dim, config.layer_scale
        self.drop_path = config.drop_path * index / max(1, config.depth - 1)  # rises linearly from block to block
        self.norm1 = nn.LayerNorm(dim, config.norm_eps)
        self.attn = Attention(config)
        self.ls1 = LayerScale(dim, scale) if scale is not None else nn.Identity()
        self.norm2 = nn.LayerNorm(dim, config.norm_eps)
        self.mlp = MLP(config)
        self.ls2 = LayerScale(dim, scale) if scale is not None else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self._drop_branch(self.ls1(self.attn(self.norm1(x))))
        return x + self._drop_branch(self.ls2(self.mlp(self.norm2(x))))

    def _drop_branch(self, branch: Tensor) -> Tensor:
        """Drops the branch of some samples of a training batch, and scales the others so that the mean stays."""
        if not self.training or self.drop_path == 0.0:
            return branch
        keep = 1.0 - self.drop_path
        return branch * branch.new_empty(len(branch), 1, 1).bernoulli_(keep).div_(keep)


class ViT(nn.Module):
    """The whole network.

    Attributes:
        config: Its shape.
        patch_size: Used where ``forward`` is given none; the stored one unless set otherwise.
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
        self.pos_embeds = Resampled()
        self.blocks = nn.ModuleList(Block(config, index) for index in range(config.depth))
        norm = nn.LayerNorm(dim, config.norm_eps) if config.final_norm else nn.Identity()
        # timm's two names: the norm stands before the pooling of a class token, after the pooling of a mean.
        is_before = config.pool.startswith("cls")
        self.norm = norm if is_before else nn.Identity()
        self.fc_norm = nn.Identity() if is_before else norm
        self.head = nn.Linear(config.num_features, config.num_classes) if config.num_classes else nn.Identity()
        if not self.patch_embed.proj.weight.is_meta:  # there, torch would import its compiler, which takes seconds
            positions = None if self.pos_embed is None else self.pos_embed[:, self.num_pos_embed_prefix :]
            init_weights(self, positions, config.stored_grid)

    def forward(self, images: Tensor, patch_size: int | None = None) -> Tensor:
        """Classifies images of any size whose sides are multiples of the patch size.

        Args:
            images: ``[B, C, height, width]``, normalised.
            patch_size: In pixels; ``self.patch_size`` by default.

        Returns:
            Logits ``[B, num_classes]``, or the pooled vector ``[B, num_features]`` of a model without classes.

        Raises:
            ValueError: If the patch size does not divide the image.
        """
        return self.forward_head(self.forward_features(images, patch_size))

    def forward_features(self, images: Tensor, patch_size: int | None = None) -> Tensor:
        """The tokens after the last block and ``norm``: ``[B, N, D]``. Arguments as in ``forward``."""
        p = self.patch_size if patch_size is None else patch_size
        height, width = images.shape[2:]
        if p < 1 or height % p or width % p:
            raise ValueError(f"A patch size of {p} does not divide an image of {height} x {width} pixels.")
        x = self.embed(images, (height // p, width // p), p)  # [B, N, D]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Logits of the tokens ``[B, N, D]`` of ``forward_features``; with ``pre_logits`` their pooled vector."""
        pooled = self.fc_norm(pool_tokens(x, self.config.pool, self.config.num_prefix_tokens))  # [B, num_features]
        return pooled if pre_logits else self.head(pooled)

    def embed(self, images: Tensor, grid: tuple[int, int], patch_size: int) -> Tensor:
        """Patch embedding, prefix tokens and positions: ``[B, num_prefix_tokens + rows * cols, D]``."""
        x = self.patch_embed(images, patch_size)  # [B, rows * cols, D]
        prefix = [token.expand(len(x), -1, -1) for token in (self.cls_token, self.reg_token) if token is not None]
        pos_embed = self.pos_embed_for(grid).to(x.dtype)
        if self.config.pos_embed_prefix:
            x = torch.cat([*prefix, x], dim=1) + pos_embed
        else:
            x = torch.cat([*prefix, x + pos_embed], dim=1)
        return F.dropout(x, self.config.dropout, self.training)

    def pos_embed_for(self, grid: tuple[int, int]) -> Tensor:
        """Positions ``[1, rows * cols (+ num_prefix_tokens), D]`` for a grid, resampled, from the formula, or zeros."""
        if self.pos_embed is None:
            length, weight = self.num_pos_embed_prefix + grid[0] * grid[1], self.patch_embed.proj.weight
            if self.config.pos_embed == "none":
                return torch.zeros(1, length, self.config.embed_dim, dtype=torch.float32, device=weight.device)
            return sincos_pos_embed(length, self.config.embed_dim).to(weight.device)
        if grid == (self.config.stored_grid,) * 2:
            return self.pos_embed
        return self.pos_embeds.get(
            self.pos_embed, grid, lambda p, g: resample_pos_embed(p, g, self.num_pos_embed_prefix)
        )
