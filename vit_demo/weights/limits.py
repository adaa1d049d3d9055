"""Limits on models that are not bundled: on files, networks, disk space and text.

They are well above the ViTs in public use, so that only damaged or hostile repositories exceed them.
"""

from vit_demo.errors import PresetError
from vit_demo.model import ViTConfig

# Files of any repository or folder.
MAX_JSON_BYTES = 1 << 20
"""``config.json`` and ``preprocessor_config.json``; once parsed they take about 24 times as much memory."""
MAX_TOKENIZER_BYTES = 4 << 20
"""``tokenizer.json``; CLIP's and SigLIP's have 2.4 MB."""
MAX_WEIGHTS_BYTES = 2 << 30
"""``model.safetensors``. No other file of a repository is downloaded than these four."""
MAX_VOCABULARY = 100_000
"""Tokens of a text tower; CLIP's has 49,408."""
MAX_TEXT_LENGTH = 512
"""Tokens of a text."""
MAX_HEADER_BYTES = 1 << 20
"""The JSON header of a safetensors file; 1,000 tensors take 0.1 MB."""
MAX_TENSORS = 5_000
"""Tensors in a file; a ViT-H has 520."""
MAX_TENSOR_NAME_LENGTH = 200
"""Characters of a tensor's name."""
MAX_RANK = 8
"""Dimensions of a tensor; a ViT needs at most 4."""

# Networks of any repository or folder.
MAX_DEPTH = 64
MAX_HEADS = 64
MAX_EMBED_DIM = 4096
MAX_MLP_RATIO = 16.0
MAX_CLASSES = 25_000
"""ImageNet-21k has 21,843."""
MAX_REGISTERS = 64
MAX_IMAGE_SIZE = 4096
"""Pixels along a side."""
MAX_SIDE = 128
"""Patches along a side; a model is tried once, and attention grows with the fourth power of this."""

MAX_NETWORK_BYTES = 5 << 30
"""Parameters and tables of a network, as it is in memory."""

# Networks that visitors of a public page choose.
MAX_GRID = 60
"""Patches along a side; also limits the patch sizes offered with any weights of the Hub."""
MAX_VISITOR_PATCH = 48
"""Pixels along the side of a patch; the matrix that resamples a kernel grows with its fourth power."""
MAX_PARAMETERS = 700_000_000
"""ViT-H has 632 million."""
MAX_FORWARD_FLOPS = 1.3e12
"""Multiplications and additions of one forward pass, or what takes as long; DINOv2-L at 518 px takes 1.1e12."""
FLOPS_OF_A_SCORE = 200
"""How many take as long as the softmax of one attention score, which counts where many heads have few channels."""
MAX_TRACE_BYTES = 600 << 20
"""Queries, keys, values and tokens of all blocks; DINOv2-L at 518 px takes 515 MiB."""

# Disk space.
VISITOR_CACHE_BYTES = 8 << 30
"""All repositories that visitors chose together; the least recently used are deleted first."""
MAX_VISITOR_REVISIONS = 500
"""Revisions of all these repositories together."""

# Text.
MAX_LABEL_LENGTH = 100
"""Characters of a class label."""
MAX_QUOTE_LENGTH = 80
"""Characters that an error message quotes from an untrusted file."""


def check_network(config: ViTConfig) -> None:
    """Refuses a network that is larger than any ViT in public use, before it is built, by a ``PresetError``."""
    for what, value, most in (
        ("blocks", config.depth, MAX_DEPTH),
        ("attention heads", config.num_heads, MAX_HEADS),
        ("channels per token", config.embed_dim, MAX_EMBED_DIM),
        ("times its width in the MLP", config.mlp_ratio, MAX_MLP_RATIO),
        ("classes", config.num_classes, MAX_CLASSES),
        ("registers", config.num_registers, MAX_REGISTERS),
        ("patches along a side", config.image_size // config.patch_size, MAX_SIDE),
        ("pixels along a side", max(config.image_size, config.patch_size * config.stored_grid), MAX_IMAGE_SIZE),
    ):
        if value > most:
            raise PresetError(f"this model has {value:,} {what}: choose one with at most {most:,}.")


def check_for_visitors(config: ViTConfig, num_parameters: int, *, has_mask: bool = False) -> None:
    """Refuses a network that would occupy a public page for too long, by a ``PresetError``."""
    side = config.image_size // config.patch_size
    if side > MAX_GRID:
        raise PresetError(
            f"this model cuts {side} x {side} patches: choose one with at most {MAX_GRID} along a side here."
        )
    if config.patch_size > MAX_VISITOR_PATCH:
        raise PresetError(
            f"this model's patches have {config.patch_size} px: choose one with at most {MAX_VISITOR_PATCH} here."
        )
    if num_parameters > MAX_PARAMETERS or not is_affordable(config, config.patch_size, has_mask=has_mask):
        raise PresetError("this model takes too much time or memory here: choose a smaller one.")


def is_affordable(config: ViTConfig, patch_size: int, *, has_mask: bool = False) -> bool:
    """Whether one forward pass at a patch size stays within ``MAX_FORWARD_FLOPS`` and ``MAX_TRACE_BYTES``."""
    nbytes = trace_bytes(config, patch_size) + (mask_bytes(config, patch_size) if has_mask else 0)
    return forward_cost(config, patch_size) <= MAX_FORWARD_FLOPS and nbytes <= MAX_TRACE_BYTES


def forward_cost(config: ViTConfig, patch_size: int) -> int:
    """As ``forward_flops``, with the softmax of heads x tokens x tokens scores in every block."""
    scores = config.depth * config.num_heads * num_tokens(config, patch_size) ** 2
    return forward_flops(config, patch_size) + FLOPS_OF_A_SCORE * scores


def forward_flops(config: ViTConfig, patch_size: int) -> int:
    """Multiplications and additions of one forward pass on a square picture."""
    return 2 * num_operations(config, patch_size, num_tokens(config, patch_size))


def num_operations(config: ViTConfig, patch_size: int, tokens: int) -> int:
    """Multiply-accumulates of one pass on a sequence of so many tokens, in matrix products and convolutions."""
    width, hidden = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    embedding = (tokens - config.num_prefix_tokens) * config.in_channels * patch_size**2 * width
    linear = 3 * width * config.head_dim if config.projection == "per_head" else 4 * width**2
    block = tokens * (linear + 2 * width * hidden) + 2 * tokens**2 * width
    return embedding + config.depth * block + config.num_features * config.num_classes


def trace_bytes(config: ViTConfig, patch_size: int) -> int:
    """Bytes of queries, keys, values and tokens of all blocks, float32."""
    return 4 * config.depth * num_tokens(config, patch_size) * config.embed_dim * 4


def mask_bytes(config: ViTConfig, patch_size: int) -> int:
    """Bytes that a mask adds to the queries and keys of all blocks, into which it is folded; see ``Trace``."""
    return 2 * 4 * config.depth * config.num_heads * num_tokens(config, patch_size) ** 2


def num_tokens(config: ViTConfig, patch_size: int) -> int:
    """Tokens of a square picture at a patch size, prefix tokens included."""
    return (config.image_size // patch_size) ** 2 + config.num_prefix_tokens
