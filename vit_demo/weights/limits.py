"""How large somebody else's model may be: every bound on what a repository can make this machine do, in one place.

Each stands well above the ViTs in public use, so that only a damaged or hostile repository meets it.
"""

from __future__ import annotations

from vit_demo.errors import PresetError
from vit_demo.model import ViTConfig

# Of files, whoever names them.
MAX_JSON_BYTES = 1 << 20
"""Of ``config.json`` and ``preprocessor_config.json``; parsed, it takes some 24 times as much memory."""
MAX_WEIGHTS_BYTES = 2 << 30
"""Of ``model.safetensors``. These three files are all that is ever fetched of a repository."""
MAX_HEADER_BYTES = 1 << 20
"""Of the JSON at the head of a safetensors file; 1,000 tensors take 0.1 MB."""
MAX_TENSORS = 5_000
"""In a file; a ViT-H has 520."""
MAX_TENSOR_NAME = 200
"""Characters of a tensor's name."""
MAX_RANK = 8
"""Dimensions of a tensor; the largest of a ViT has 4."""

# Of networks, whoever names them.
MAX_DEPTH = 64
MAX_HEADS = 64
MAX_EMBED_DIM = 4096
MAX_MLP_RATIO = 16.0
MAX_CLASSES = 25_000
"""ImageNet-21k has 21,843."""
MAX_REGISTERS = 64
MAX_IMAGE_SIZE = 4096
"""Pixels along a side."""

# Of networks that visitors of a public page name.
MAX_GRID = 60
"""Patches along a side; also of the patch sizes that are offered with any public weights."""
MAX_VISITOR_PATCH = 48
"""Pixels along a side; the matrix that resamples a kernel grows with the fourth power."""
MAX_PARAMETERS = 700_000_000
"""ViT-H has 632 million."""
MAX_FORWARD_FLOPS = 1.3e12
"""Of one pass, multiplications and additions; DINOv2-L at 518 px takes 1.0e12."""
MAX_TRACE_BYTES = 600 << 20
"""Of the queries, keys, values and tokens of all blocks; DINOv2-L at 518 px has 515 MiB."""

# Of the disk.
VISITOR_CACHE_BYTES = 8 << 30
"""Of all repositories that visitors named; the least recently used make room."""
MAX_VISITOR_REVISIONS = 500
"""Of all repositories that visitors named."""

# Of text.
MAX_LABEL = 100
"""Characters of a class's name."""
MAX_QUOTE = 80
"""Characters of what a sentence quotes from somebody else's file."""


def check_network(config: ViTConfig) -> None:
    """Refuses a network that is larger than any in use, before it is built.

    Raises:
        PresetError: Naming the part that is too large.
    """
    for what, value, most in (
        ("blocks", config.depth, MAX_DEPTH),
        ("attention heads", config.num_heads, MAX_HEADS),
        ("channels a token", config.embed_dim, MAX_EMBED_DIM),
        ("times that width in its MLP", config.mlp_ratio, MAX_MLP_RATIO),
        ("classes", config.num_classes, MAX_CLASSES),
        ("registers", config.num_registers, MAX_REGISTERS),
        ("pixels along a side", max(config.image_size, config.patch_size * config.stored_grid), MAX_IMAGE_SIZE),
    ):
        if value > most:
            raise PresetError(f"this model has {value:,} {what}: choose one with at most {most:,}.")


def check_for_visitors(config: ViTConfig, num_parameters: int) -> None:
    """Refuses a network that would keep a public page busy for too long.

    Raises:
        PresetError: Saying what is too large.
    """
    side = config.image_size // config.patch_size
    if side > MAX_GRID:
        raise PresetError(
            f"this model cuts {side} x {side} patches: choose one with at most {MAX_GRID} along a side here."
        )
    if config.patch_size > MAX_VISITOR_PATCH:
        raise PresetError(
            f"this model's patches have {config.patch_size} px: choose one with at most {MAX_VISITOR_PATCH} here."
        )
    if num_parameters > MAX_PARAMETERS or not is_affordable(config, config.patch_size):
        raise PresetError("this model takes too much time or memory here: choose a smaller one.")


def is_affordable(config: ViTConfig, patch_size: int) -> bool:
    """Whether one pass with patches of a size stays within ``MAX_FORWARD_FLOPS`` and ``MAX_TRACE_BYTES``."""
    tokens = (config.image_size // patch_size) ** 2 + config.num_prefix
    width, depth = config.embed_dim, config.depth
    linear = 2 * tokens * depth * width**2 * (4 + 2 * config.mlp_ratio)  # q, k, v and projection; the MLP's two maps
    attention = 4 * tokens**2 * width * depth
    trace_bytes = 4 * tokens * width * 4 * depth  # q, k, v and the tokens, float32
    return linear + attention <= MAX_FORWARD_FLOPS and trace_bytes <= MAX_TRACE_BYTES
