"""Limits on models that are not bundled: on files, networks, disk space and text.

They are well above the ViTs in public use, so that only damaged or hostile repositories exceed them.
"""

from vit_demo.errors import PresetError
from vit_demo.model import ViTConfig
from vit_demo.resources import memory_limit
from vit_demo.weights import costs

# Files of any repository or folder.
MAX_JSON_BYTES = 1 << 20  # ``config.json`` and ``preprocessor_config.json``; parsed they take 24 times as much
MAX_TOKENIZER_BYTES = 4 << 20  # ``tokenizer.json``; CLIP's and SigLIP's have 2.4 MB
MAX_WEIGHTS_BYTES = 2 << 30  # ``model.safetensors``; no other file of a repository is downloaded than these four
MAX_VOCABULARY = 100_000  # tokens of a text tower; CLIP's has 49,408
MAX_TEXT_LENGTH = 512  # tokens of a text
MAX_HEADER_BYTES = 1 << 20  # the JSON header of a safetensors file; 1,000 tensors take 0.1 MB
MAX_TENSORS = 5_000  # tensors in a file; a ViT-H has 520
MAX_TENSOR_NAME_LENGTH = 200  # characters of a tensor's name
MAX_RANK = 8  # dimensions of a tensor; a ViT needs at most 4

# Networks of any repository or folder.
MAX_DEPTH = 64
MAX_HEADS = 64
MAX_EMBED_DIM = 4096
MAX_MLP_RATIO = 16.0
MAX_CLASSES = 25_000  # classes; ImageNet-21k has 21,843
MAX_REGISTERS = 64
MAX_IMAGE_SIZE = 4096  # pixels along a side
MAX_SIDE = 128  # patches along a side; a model is tried once, and attention grows with the fourth power of this
MAX_NETWORK_BYTES = 5 << 30  # parameters and tables of a network, as it is in memory

# Networks that visitors of a public page choose.
MAX_GRID = 60  # patches along a side; also limits the patch sizes offered with any weights of the Hub
MAX_VISITOR_PATCH = 48  # pixels along a patch; the matrix that resamples a kernel grows with its fourth power
MAX_PARAMETERS = min(700_000_000, memory_limit() // 12)  # ViT-H has 632 million; a third of the memory at most
MAX_OPERATIONS = 6.5e11  # multiply-accumulates of one pass, or what takes as long; DINOv2-L at 518 px: 5.5e11
MAX_TRACE_BYTES = 600 << 20  # queries, keys, values and tokens of all blocks; DINOv2-L at 518 px takes 515 MiB

# Disk space.
VISITOR_CACHE_BYTES = 8 << 30  # all repositories that visitors chose; the least recently used are deleted first
MAX_VISITOR_REVISIONS = 500  # revisions of all these repositories together

# Text.
MAX_LABEL_LENGTH = 100  # characters of a class label
MAX_QUOTE_LENGTH = 80  # characters that an error message quotes from an untrusted file


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
    """Whether one forward pass at a patch size stays within ``MAX_OPERATIONS`` and ``MAX_TRACE_BYTES``."""
    nbytes = costs.trace_bytes(config, patch_size) + (costs.mask_bytes(config, patch_size) if has_mask else 0)
    return costs.forward(config, patch_size).operations <= MAX_OPERATIONS and nbytes <= MAX_TRACE_BYTES
