"""The size of a network that a visitor builds: what each of its stages returns and costs."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from vit_demo.errors import InputError
from vit_demo.model import ViTConfig
from vit_demo.web.requests import parse
from vit_demo.web.requests.parse import Json
from vit_demo.web.requests.training import is_too_large, read_config
from vit_demo.weights.costs import num_tokens, operations_of_parts

MOST = 2**53  # above it JavaScript's integers are not exact


@dataclass(frozen=True)
class NetworkRequest:
    """A network, by the fields of ``ViTConfig``, and the patch size in pixels at which it runs."""

    config: Annotated[ViTConfig, BeforeValidator(read_config)]
    patch_size: Annotated[int, parse.whole_number("patch size", 1, 10_000)]


async def network_size(request: NetworkRequest) -> Json:
    """The stages of a network, from the picture to the logits, and their totals.

    Returns:
        ``stages``: ``name``, the ``shape`` of what it returns for one picture, its ``parameters`` and ``operations``,
        those of all blocks together, and the shapes ``inner`` by name. ``parameters`` and ``operations`` (see
        ``costs.num_operations``) of all; ``tokens``; ``attention_bytes`` of a block's attention weights in float32;
        ``hindrance``, why it cannot be trained here: ``"task"``, ``"size"``, or nothing.

    Raises:
        InputError: If the patch size does not divide the picture, or a count is too large.
    """
    config, size = request.config, request.patch_size
    if config.image_size % size:
        raise InputError(f"A patch size of {size} does not divide an image of {config.image_size} pixels.")
    tokens, width, heads = num_tokens(config, size), config.embed_dim, config.num_heads
    parameters, operations = config.parameters_of_parts, operations_of_parts(config, size, tokens)
    shapes = {
        "picture": [config.in_channels, config.image_size, config.image_size],
        "patch_embed": [tokens - config.num_prefix_tokens, width],
        "tokens": [tokens, width],
        "attention": [tokens, width],
        "mlp": [tokens, width],
        "norm": [config.num_features],
        "head": [config.num_classes],
    }
    inner: dict[str, dict[str, list[int]]] = {
        "attention": {"qkv": [1, heads, tokens, config.head_dim], "weights": [1, heads, tokens, tokens]},
        "mlp": {"hidden": [1, tokens, int(width * config.mlp_ratio)]},
    }
    names = {} if config.num_prefix_tokens else {"tokens": "positions"}
    names |= {} if config.final_norm else {"norm": "pooling"}
    stages: list[dict[str, Any]] = [
        {
            "name": names.get(part, part),
            "shape": [1, *shape],
            "parameters": parameters.get(part, 0),
            "operations": operations.get(part, 0),
            "inner": inner.get(part, {}),
        }
        for part, shape in shapes.items()
        if part != "head" or config.num_classes
    ]
    totals = {
        "parameters": sum(parameters.values()),
        "operations": sum(operations.values()),
        "tokens": tokens,
        "attention_bytes": 4 * heads * tokens**2,
    }
    if max(totals.values()) > MOST:
        raise InputError("This network is too large to be counted: choose smaller numbers.")
    return {"stages": stages, **totals, "hindrance": _hindrance(replace(config, patch_size=size, pos_embed_grid=None))}


def _hindrance(config: ViTConfig) -> str:
    if (config.image_size, config.in_channels, config.num_classes) != (28, 1, 10):
        return "task"
    return "size" if is_too_large(config) else ""
