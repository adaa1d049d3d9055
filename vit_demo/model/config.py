"""The shape of a Vision Transformer, as one frozen record."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Pool = Literal["cls", "mean", "all", "cls+mean", "cls+next"]
PosEmbed = Literal["learned", "sincos", "none"]
Projection = Literal["fused", "per_head"]

_AT_LEAST = {
    "image_size": 1, "patch_size": 1, "in_channels": 1, "num_classes": 0, "embed_dim": 1, "depth": 1, "num_heads": 1,
    "num_registers": 0,
}  # fmt: skip
_MOST = 1e9  # limit of real numbers: products of two fields stay finite, in float32 as well
_CHOICES = {"pool": Pool, "pos_embed": PosEmbed, "projection": Projection}
_FLAGS = ("pos_embed_prefix", "class_token", "qkv_bias", "final_norm")


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """Everything that determines the tensors of a ViT and how they are used.

    Attributes:
        image_size: Side of the square training image, in pixels.
        patch_size: Side of the patches of the *stored* kernel, in pixels.
        in_channels: 1 for grey, 3 for RGB.
        num_classes: Outputs of the head; 0 for a model without one.
        embed_dim: Width of a token.
        depth: Number of blocks.
        num_heads: Attention heads of a block; must divide ``embed_dim``.
        mlp_ratio: Hidden width of the MLP over ``embed_dim``.
        pool: What the head reads: the class token (``"cls"``), the mean of the patch tokens (``"mean"``), or the mean
            of all tokens, class token and registers included (``"all"``). Twice as wide, side by side: the class token
            and the mean of the patches (``"cls+mean"``), or the class token and the token after it (``"cls+next"``),
            which is how a distilled DeiT lets two heads share the answer.
        pos_embed: A learned table, the fixed sine and cosine table of Vaswani et al. (2017), or none.
        pos_embed_grid: Side of the *stored* grid of positions; by default ``image_size // patch_size``. A flexible
            model stores a finer one, so that small patches lose nothing.
        pos_embed_prefix: Whether the class token and the registers have positions of their own; the opposite of timm's
            ``no_embed_class``.
        class_token: Whether a class token comes first.
        num_registers: Register tokens after the class token (Darcet et al., 2023).
        layer_scale: Initial value of the per-channel residual scale (Touvron et al., 2021), or None for no scale.
        projection: ``"fused"``: one q, k, v matrix over the whole width, and an output projection. ``"per_head"``: each
            head maps only its own slice of the token, and nothing mixes the heads afterwards.
        qkv_bias: Whether the q, k, v maps have a bias.
        final_norm: Whether a LayerNorm stands before the head.
        norm_eps: Epsilon of every LayerNorm.
        dropout: Dropped share of embeddings, attention outputs and MLP activations, in training only.
        drop_path: Share of residual branches skipped in the last block, rising linearly from 0 in the first, in
            training only (Huang et al., 2016).
    """

    image_size: int = 224
    patch_size: int = 16
    in_channels: int = 3
    num_classes: int = 1000
    embed_dim: int = 192
    depth: int = 12
    num_heads: int = 3
    mlp_ratio: float = 4.0
    pool: Pool = "cls"
    pos_embed: PosEmbed = "learned"
    pos_embed_grid: int | None = None
    pos_embed_prefix: bool = True
    class_token: bool = True
    num_registers: int = 0
    layer_scale: float | None = None
    projection: Projection = "fused"
    qkv_bias: bool = True
    final_norm: bool = True
    norm_eps: float = 1e-6
    dropout: float = 0.0
    drop_path: float = 0.0

    def __post_init__(self) -> None:
        """Checks the fields; ``ValueError`` names one out of range or of the wrong type, or two that disagree."""
        self._check_fields()
        if self.embed_dim % self.num_heads:
            raise ValueError(f"embed_dim {self.embed_dim} must be a multiple of num_heads {self.num_heads}.")
        if self.image_size % self.patch_size:
            raise ValueError(f"image_size {self.image_size} must be a multiple of patch_size {self.patch_size}.")
        if self.pool.startswith("cls") and not self.class_token:
            raise ValueError(f'pool="{self.pool}" needs class_token=True.')
        if self.pool == "cls+next" and not self.num_registers:
            raise ValueError('pool="cls+next" needs num_registers of at least 1.')

    def _check_fields(self) -> None:
        integers = _AT_LEAST if self.pos_embed_grid is None else _AT_LEAST | {"pos_embed_grid": 1}
        for name, least in integers.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value < 1 << 31:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r:.30}.")
        for name in _FLAGS:
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r:.30}.")
        for name, kind in _CHOICES.items():
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"{name} must be one of {', '.join(get_args(kind))}, not {getattr(self, name)!r:.30}.")
        for name in ("mlp_ratio", "norm_eps", "dropout", "drop_path", "layer_scale"):
            value = getattr(self, name)
            if name == "layer_scale" and value is None:
                continue
            if type(value) not in (int, float) or not 0 <= value <= _MOST:
                raise ValueError(f"{name} must be a number from 0 to {_MOST:g}, not {value!r:.30}.")
        if self.embed_dim * self.mlp_ratio < 1:
            raise ValueError(f"mlp_ratio {self.mlp_ratio} leaves no hidden channel of {self.embed_dim}.")
        if self.dropout >= 1 or self.drop_path >= 1:
            raise ValueError("dropout and drop_path must be below 1.")

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.embed_dim // self.num_heads

    @property
    def num_features(self) -> int:
        """Width of the vector that the head reads."""
        return self.embed_dim * (2 if "+" in self.pool else 1)

    @property
    def num_prefix_tokens(self) -> int:
        """Tokens before the first patch: the class token and the registers."""
        return int(self.class_token) + self.num_registers

    @property
    def stored_grid(self) -> int:
        """Side of the stored grid of positions."""
        return self.pos_embed_grid or self.image_size // self.patch_size

    @property
    def parameters_of_parts(self) -> dict[str, int]:
        """Weights of each part of the network, those of all blocks together, counted without building it."""
        dim, hidden, d = self.embed_dim, int(self.embed_dim * self.mlp_ratio), self.head_dim
        prefix_positions = self.num_prefix_tokens if self.pos_embed_prefix else 0
        positions = (prefix_positions + self.stored_grid**2) * dim if self.pos_embed == "learned" else 0
        if self.projection == "per_head":
            attention = 3 * self.num_heads * (d * d + d)
        else:
            attention = 3 * dim * dim + (3 * dim if self.qkv_bias else 0) + dim * dim + dim
        norm_and_scale = 2 * dim + (0 if self.layer_scale is None else dim)
        return {
            "patch_embed": self.in_channels * self.patch_size**2 * dim + dim,
            "tokens": self.num_prefix_tokens * dim + positions,
            "attention": self.depth * (norm_and_scale + attention),
            "mlp": self.depth * (norm_and_scale + dim * hidden + hidden + hidden * dim + dim),
            "norm": 2 * dim if self.final_norm else 0,
            "head": (self.num_features + 1) * self.num_classes,
        }

    @property
    def num_parameters(self) -> int:
        """Weights of the network, counted without building it."""
        return sum(self.parameters_of_parts.values())

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for a checkpoint's header."""
        return asdict(self)


# The four notebooks this project grew from.

EINOPS_VIT = ViTConfig(embed_dim=768, depth=12, num_heads=8, pool="all")
"""Convolutional or rearranged patches, mean-pooled head, 1,000 classes."""

ANNOTATED_VIT = ViTConfig(embed_dim=768, depth=12, num_heads=8, dropout=0.1, norm_eps=1e-5)
"""The semantics of ``torch.nn.MultiheadAttention``, 3,072 hidden units, dropout 0.1."""

VIT_TINY = ViTConfig(embed_dim=192, depth=12, num_heads=3)
"""ViT-Ti/16 at 224 pixels, whose every block can give its attention ``[B, 3, 197, 197]``."""

MNIST_FROM_SCRATCH = ViTConfig(
    image_size=28,
    patch_size=4,
    in_channels=1,
    num_classes=10,
    embed_dim=8,
    depth=2,
    num_heads=2,
    pos_embed="sincos",
    projection="per_head",
    final_norm=False,
    norm_eps=1e-5,
)
"""28 x 28 pixels as 7 x 7 patches of 16 values, 8-d tokens, heads that see only their own slice."""
