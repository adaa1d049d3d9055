"""Requests of the guided tour, and the code that each step shows."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from vit_demo.errors import InputError
from vit_demo.inference import steps
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.sequence import patch_index, query_token
from vit_demo.model.vit import MLP, Attention, Block, PatchEmbed, ScaledDotProduct, ViT
from vit_demo.trace.attention_mode import attention_rows, attention_scores
from vit_demo.web.requests import parse
from vit_demo.web.requests.parse import Json
from vit_demo.web.requests.payload import encode


@dataclass(frozen=True)
class StepRequest:
    """Which numbers of a result are wanted.

    Attributes:
        query: Index of a patch, row by row; None for the class token.
        block: From 0.
        head: From 0.
    """

    query: parse.Query = None
    block: parse.Block = 0
    head: Annotated[int, parse.whole_number("head")] = 0


def network_steps(result: Exploration, request: None = None) -> Json:
    """The numbers that all patches share, and the shape of the network; see ``steps.describe_network``."""
    config = result.preset.config
    facts, tensors = result.run(steps.describe_network)
    return {
        "network": {
            **facts,
            "channels": config.in_channels,
            "registers": config.num_registers,
            "classes": config.num_classes,
            "scores": result.preset.scores,
            "pool": config.pool if result.trace.pooling is None else "attention",
            "input_size": list(result.pixels.shape[2:]),
            "mean": list(result.preset.mean),
            "std": list(result.preset.std),
        },
        "labels": {
            name: [result.labels[index] for index in tensors[name].tolist()]
            for name in ("classes", "depth_class")
            if name in tensors
        },
        **_encoded(tensors),
    }


def patch_steps(result: Exploration, request: StepRequest) -> Json:
    """How one patch becomes a token; see ``steps.describe_patch``."""
    if request.query is None:
        raise InputError("No patch is chosen: send its index as query.")
    patch_index(result, divmod(request.query, result.grid[1]))
    return _encoded(result.run(steps.describe_patch, request.query))


def block_steps(result: Exploration, request: StepRequest) -> Json:
    """What one block does to one token; see ``steps.describe_block``."""
    query = None if request.query is None else divmod(request.query, result.grid[1])
    if query_token(result, request.block, request.head, query) is None:
        raise InputError("This model has no class token: choose a patch.")
    return _encoded(result.run(steps.describe_block, request.query, request.block, request.head))


def step_code() -> list[list[dict[str, str]]]:
    """The lines of the package that each of the eight steps shows.

    The fused kernel of the fourth step returns no attention, so the lines that compute the maps follow its call.
    """
    return [
        [_excerpt(ViT.forward_features, "p = self.patch_size", "height, width", "x = self.embed")],
        [_excerpt(PatchEmbed.forward, "kernel =", "if patch_size", "kernel =", "x = F.conv2d", "return x")],
        [_excerpt(ViT.embed, "prefix =", "pos_embed =", "if self.config", "x = torch.cat", "else:", "x = torch.cat")],
        [
            _excerpt(Attention.forward, "qkv = ", "q, k, v = ", "x = self.attend"),
            _excerpt(ScaledDotProduct.forward, "return"),
            _excerpt(attention_scores, "return (q.float()"),
            _excerpt(attention_rows, "return attention_scores"),
        ],
        [
            _excerpt(Attention.forward, "x = x.transpose", "return F.dropout"),
            _excerpt(Block.forward, "x = x + self._drop_branch(self.ls1"),
        ],
        [
            _excerpt(MLP.forward, "x = F.dropout", "return F.dropout"),
            _excerpt(Block.forward, "return x + self._drop_branch(self.ls2"),
        ],
        [_excerpt(ViT.forward_features, "for block in", "x = block(x", "return self.norm")],
        [_excerpt(ViT.forward_head, "pooled =", "return pooled if")],
    ]


def _excerpt(function: Callable[..., Any], *starts: str) -> dict[str, str]:
    """The lines of a function that begin with these words, in this order, and where they are."""
    lines = iter(inspect.getsource(function).splitlines())
    chosen = [next((line for line in lines if line.strip().startswith(start)), "") for start in starts]
    path = function.__module__.replace(".", "/") + ".py"
    return {"where": f"{path}, {function.__qualname__}", "code": textwrap.dedent("\n".join(filter(None, chosen)))}


def _encoded(tensors: steps.Numbers) -> Json:
    """Tensors as base64: whole numbers as int32, the compressed positions as float16, all others as float32."""

    def array(tensor: torch.Tensor) -> np.ndarray:
        if tensor.dtype == torch.float16:
            return tensor.numpy()
        return tensor.to(torch.float32 if tensor.is_floating_point() else torch.int32).numpy()

    return {name: encode(array(tensor)) for name, tensor in tensors.items()}
