"""What work on a network costs, in bytes and operations, known before it begins: one estimate for everything.

Bytes are those of float32 activations; of the weights only where they are trained.
"""

from typing import NamedTuple

from vit_demo.model import ViTConfig

OPERATIONS_OF_A_SCORE = 100  # operations as long as the softmax of one score, which counts where heads are narrow
OPERATIONS_A_SECOND = 10**10  # operations a second of one core, in the products of small networks
OPERATIONS_OF_SEGMENTS = 3 * 10**6  # operations that take as long as the hundreds of steps of k-means, for each token
BATCH_TOKENS, BATCH_TOKENS_WITH_GRAPH = 8192, 1024  # tokens of many passes at once, without a graph and with
WHOLE_SCORES, CHUNK_SCORES = 1 << 18, 3 << 21  # scores that a map holds at once; see ``methods.attention_rows``
CHUNK_OF_PROOF = 1 << 23  # scores of a block that are held at once; see ``trace.proof``


class Cost(NamedTuple):
    """Bytes, and multiply-accumulates or what takes as long."""

    nbytes: int
    operations: int

    @property
    def seconds(self) -> float:
        """About how long it takes on one core."""
        return self.operations / OPERATIONS_A_SECOND


def forward(config: ViTConfig, patch_size: int, *, has_mask: bool = False) -> Cost:
    """A pass that keeps the queries, keys and values of every block, and for a time the activations of one."""
    tokens = num_tokens(config, patch_size)
    values = tokens * (3 * config.depth * config.embed_dim + _widths_of_a_block(config))
    scores = config.depth * config.num_heads * tokens**2
    operations = num_operations(config, patch_size, tokens) + OPERATIONS_OF_A_SCORE * scores
    return Cost(4 * values + (mask_bytes(config, patch_size) if has_mask else 0), operations)


def backward(config: ViTConfig, patch_size: int, *, has_mask: bool = False) -> Cost:
    """A map: the activations of all blocks, their gradients, and whole matrices of attention where these are faster."""
    tokens = num_tokens(config, patch_size)
    scores = config.num_heads * tokens**2
    matrices = 2 * scores if scores <= WHOLE_SCORES else 0
    kept = config.depth * (tokens * _widths_of_a_graph(config, 16) + matrices)
    masks = 3 * mask_bytes(config, patch_size) if has_mask else 0
    return Cost(4 * (kept + min(3 * scores, CHUNK_SCORES)) + masks, 3 * forward(config, patch_size).operations)


def many_passes(config: ViTConfig, patch_size: int, *, has_mask: bool = False) -> Cost:
    """A batch of passes that keep nothing, or a smaller one of those that keep their graph, whichever takes more."""
    tokens = num_tokens(config, patch_size)
    batch = max(1, BATCH_TOKENS // tokens)
    plain = 4 * batch * (tokens * _widths_of_a_block(config) + 2 * config.in_channels * config.image_size**2)
    graphs = max(1, BATCH_TOKENS_WITH_GRAPH // tokens) * backward(config, patch_size, has_mask=has_mask).nbytes
    return Cost(max(plain, graphs), batch * forward(config, patch_size).operations)


def proof(config: ViTConfig, patch_size: int, *, has_mask: bool = False) -> Cost:
    """The passes that prove what is known of a network, of which the modules' inputs and outputs are kept."""
    tokens, kept = num_tokens(config, patch_size), backward(config, patch_size, has_mask=has_mask)
    scores = 2 * tokens**2 + 3 * min(2 * config.num_heads * tokens**2, CHUNK_OF_PROOF)
    return Cost(kept.nbytes + 4 * scores, 5 * kept.operations)


def training_step(config: ViTConfig, batch: int) -> Cost:
    """A step of AdamW on a batch, with five numbers for each weight: its gradient, two means, and a new value."""
    tokens = batch * num_tokens(config, config.patch_size)
    values = config.depth * tokens * _widths_of_a_graph(config, 12) + 5 * config.num_parameters
    return Cost(4 * values, 3 * batch * forward(config, config.patch_size).operations)


def compare_tokens(config: ViTConfig, patch_size: int, pictures: int) -> Cost:
    """Principal components and segments of the tokens of so many pictures, in a few copies of float64."""
    count, width = pictures * num_tokens(config, patch_size), config.embed_dim
    return Cost(64 * count * width, count * (OPERATIONS_OF_SEGMENTS + 20 * width * min(count, width)))


def num_operations(config: ViTConfig, patch_size: int, tokens: int) -> int:
    """Multiply-accumulates of one pass on a sequence of so many tokens, in matrix products and convolutions."""
    return sum(operations_of_parts(config, patch_size, tokens).values())


def operations_of_parts(config: ViTConfig, patch_size: int, tokens: int) -> dict[str, int]:
    """As ``num_operations``, by the names of ``ViTConfig.parameters_of_parts``."""
    width, hidden = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    linear = 3 * width * config.head_dim if config.projection == "per_head" else 4 * width**2
    return {
        "patch_embed": (tokens - config.num_prefix_tokens) * config.in_channels * patch_size**2 * width,
        "attention": config.depth * (tokens * linear + 2 * tokens**2 * width),
        "mlp": config.depth * 2 * tokens * width * hidden,
        "head": config.num_features * config.num_classes,
    }


def trace_bytes(config: ViTConfig, patch_size: int) -> int:
    """Bytes of queries, keys, values and tokens of all blocks."""
    return 4 * config.depth * num_tokens(config, patch_size) * config.embed_dim * 4


def mask_bytes(config: ViTConfig, patch_size: int) -> int:
    """Bytes that a mask adds to the queries and keys of all blocks, into which it is folded; see ``Trace``."""
    return 2 * 4 * config.depth * config.num_heads * num_tokens(config, patch_size) ** 2


def num_tokens(config: ViTConfig, patch_size: int) -> int:
    """Tokens of a square picture at a patch size, prefix tokens included."""
    return (config.image_size // patch_size) ** 2 + config.num_prefix_tokens


def _widths_of_a_block(config: ViTConfig) -> int:
    """Numbers for each token that a block has at a time: in its attention, or in its MLP."""
    return max(8 * config.embed_dim, 3 * config.embed_dim + 2 * int(config.embed_dim * config.mlp_ratio))


def _widths_of_a_graph(config: ViTConfig, count: int) -> int:
    """Numbers for each token that a block keeps for a backward: so many widths, and its hidden channels twice."""
    return count * config.embed_dim + 2 * int(config.embed_dim * config.mlp_ratio)
