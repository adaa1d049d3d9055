"""Why a network is refused, in one sentence each."""

from torch import nn

NOT_SEEN = (
    "No attention was seen in this network: use one that calls torch's scaled_dot_product_attention or a softmax, "
    'without torch.compile (in transformers: attn_implementation="sdpa" or "eager").'
)
NOT_FOLLOWED = (
    "A softmax was seen in this network, but not how attention is used: multiply it with the values by matmul, bmm or "
    "einsum, or call torch's scaled_dot_product_attention."
)
HIERARCHICAL = (
    "This network is hierarchical: its blocks differ in their numbers of tokens or windows, or have fewer keys than "
    "queries. Choose a plain Vision Transformer."
)
MORE_KEYS = (
    "The attention of this network has more keys than tokens (memory), which no patch stands for: choose a plain "
    "Vision Transformer."
)
SLOTS = (
    "Besides attention, this network mixes its tokens into others by a softmax and back, as a soft mixture of experts "
    "does: choose a plain Vision Transformer."
)
CHUNKS = (
    "This network computes attention for some of its queries at a time: pass all of them to one call of "
    "scaled_dot_product_attention."
)
NOT_OF_TOKENS = "Attention was seen in this network, but not between its tokens: choose a plain Vision Transformer."
NOT_SHOWN = "The tokens between the blocks of this network cannot be seen: its blocks are not modules."
NO_PROJECTION = "What a block of this network adds after attention is not what one linear map gives, which this needs."
NO_PATCHES = "The patches of this network were not found: pass patch_size= with their side in pixels."
OTHER_COUNT = (
    "Patches of {} pixels do not give the {} tokens of this network: it resizes or crops its pictures (then pass the "
    "network inside it, and transform= with what makes its input), joins patches, or they are no whole number."
)
NO_GRADIENT = (
    "No gradient reaches the pixels of this network, as where it rounds them: pass the network inside it, and "
    "transform= with what makes its input."
)
NOT_IN_ORDER = "The tokens of this network are not in the order of its patches, row by row, so maps would be wrong."
MOVES = (
    "This network moves the pixels of its pictures before its patches, as a resize, crop or mirror does, so maps would "
    "lie beside what they show: pass the network inside it, and transform= with what makes its input."
)


def why_no_squares(module: nn.Module, otherwise: str) -> str:
    """What the first convolution says of why the patches of a network are not the squares of a grid."""
    first = next((one for one in module.modules() if isinstance(one, nn.Conv2d)), None)
    if first is not None and first.stride[0] != first.stride[1]:
        sides = f"{first.stride[0]} x {first.stride[1]}"
        return f"The patches of this network are {sides} pixels: choose one whose patches are squares."
    if first is not None and first.kernel_size[0] > first.stride[0]:
        return (
            f"The patches of this network overlap ({first.kernel_size[0]} pixels, {first.stride[0]} apart) and are not "
            "in the middle of the squares of a grid: choose one whose patches lie side by side."
        )
    return otherwise
