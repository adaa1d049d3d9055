"""The numbers behind the page's guided tour: what one forward pass does to one patch, step by step.

Every function runs one pass of a network in eval mode on ``pixels`` ``[1, C, height, width]`` and takes the numbers
from what goes into the network's own modules and what comes out of them. Scores and attention weights are the
exception, because the fused kernel never writes them down: they are computed from the queries and keys of that pass, as
for every attention map. ``kept_patches`` is as in ``TracedViT.forward``; a described patch, counted row by row, must be
among them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import InputError
from vit_demo.features.similarity import compress
from vit_demo.methods.attention_rows import attention_rows, attention_scores
from vit_demo.model import ViT
from vit_demo.model.resample import resample_patch_embed
from vit_demo.model.vit import Block
from vit_demo.trace import TracedViT

Numbers = dict[str, Tensor]

MAX_FILTERS = 24
"""Filters of the patch embedding that are returned, those of the largest norm."""

MAX_FILTER_VALUES = 20_000
"""Weights of the returned filters together; large filters are fewer, but at least four."""

NUM_KEYS = 4
"""Tokens with the largest attention weights whose keys and values are returned."""

NUM_CLASSES = 5
"""Most likely classes whose logits are returned."""


class Call(NamedTuple):
    """What went into a module and what came out of it."""

    given: Tensor
    returned: Tensor


@contextmanager
def record_calls(**modules: nn.Module) -> Iterator[dict[str, Call]]:
    """Records the last call of some modules in this thread; other threads may run the same network meanwhile."""
    thread, calls = threading.get_ident(), dict[str, Call]()

    def hook_of(name: str) -> Any:
        def hook(module: nn.Module, given: tuple[Any, ...], returned: Tensor) -> None:
            if threading.get_ident() == thread:
                calls[name] = Call(given[0], returned)

        return hook

    handles = [module.register_forward_hook(hook_of(name)) for name, module in modules.items()]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


@torch.inference_mode()
def describe_network(
    model: TracedViT, pixels: Tensor, *, patch_size: int, kept_patches: Tensor | None = None
) -> Numbers:
    """What all patches share: filters, positions, the prediction after each block and the classifier head.

    Returns:
        - ``filters``: indices ``[F]`` of the filters of largest norm, ``kernel``: their weights ``[F, C, p, p]``,
          ``bias``: ``[F]``.
        - ``positions``: ``[rows * cols, r]`` float16; products of two rows are the cosine similarities of the position
          embeddings, within ``features.similarity.MAX_ERROR``.
        - ``contrast``: ``[rows * cols]``: standard deviation of the pixels of each patch; 0 for a dropped one.
        - ``pooled``: ``[num_features]``: what the classifier head reads.
        - With classes: ``depth_class`` and ``depth_top`` ``[blocks + 1]``: the most likely class before the first block
          and after each, and its probability; ``depth_final`` ``[blocks + 1]``: the probability of the class that is
          predicted in the end; ``classes``, ``logits`` ``[up to 5]``: the most likely classes, most likely first;
          ``logsumexp``: ``[1]``, of all logits.
        - Without classes: ``depth_similarity`` ``[blocks + 1]``: cosine similarity of the pooled vector of each depth
          to the last; ``alike`` ``[rows * cols]``: cosine similarity of each patch's last token to the class token, or
          to the mean of all tokens where there is none; 0 for a dropped patch.
    """
    vit = _own(model)
    blocks = {f"block{index}": block for index, block in enumerate(vit.blocks)}
    with record_calls(norm=vit.norm, head=vit.head, **blocks) as calls:
        output = model(pixels, patch_size=patch_size, kept_patches=kept_patches)
    depths = [calls["block0"].given, *(calls[name].returned for name in blocks)]
    grid = grid_of(pixels, patch_size)
    kernel = vit.patch_embed.kernels.get(vit.patch_embed.proj.weight, patch_size, resample_patch_embed)
    count = min(len(kernel), MAX_FILTERS, max(4, MAX_FILTER_VALUES // kernel[0].numel()))
    filters = kernel.flatten(1).norm(dim=1).argsort(descending=True, stable=True)[:count]
    patches = pixels[0].unfold(1, patch_size, patch_size).unfold(2, patch_size, patch_size)  # [C, rows, cols, p, p]
    contrast = patches.flatten(3).std(-1, correction=0).mean(0).flatten()
    _, bias = vit.patch_embed.proj.parameters()
    found = {
        "filters": filters,
        "kernel": kernel[filters],
        "bias": bias[filters],
        "positions": compress(vit.pos_embed_for(grid)[0, vit.num_pos_embed_prefix :]),
        "contrast": _on_grid(contrast, grid, kept_patches, only_kept=True),
        "pooled": calls["head"].given[0],
    }
    pooled = torch.cat([vit.forward_head(vit.norm(x), pre_logits=True) for x in depths])  # [blocks + 1, F]
    if vit.config.num_classes:
        found |= _classes(vit.head(pooled), output[0])
    else:
        tokens = calls["norm"].returned[0]  # [N, D]
        reference = tokens[:1] if vit.config.class_token else tokens.mean(0, keepdim=True)
        alike = F.cosine_similarity(tokens[vit.config.num_prefix_tokens :], reference)
        found |= {
            "depth_similarity": F.cosine_similarity(pooled, pooled[-1:]),
            "alike": _on_grid(alike, grid, kept_patches),
        }
    return _to_cpu(found)


@torch.inference_mode()
def describe_patch(
    model: TracedViT, pixels: Tensor, patch: int, *, patch_size: int, kept_patches: Tensor | None = None
) -> Numbers:
    """How one patch becomes a token; arguments as in ``describe_network``.

    Returns:
        ``pixels`` ``[C, p, p]``, normalised; ``embedded`` ``[D]``: the patch embedding; ``position`` ``[D]``: its
        position embedding; ``token`` ``[D]``: their sum, which enters the first block; ``class_token`` ``[D]``, with
        its position, if the model has one.
    """
    vit = _own(model)
    with record_calls(embed=vit.patch_embed, block=cast("Block", vit.blocks[0])) as calls:
        model(pixels, patch_size=patch_size, kept_patches=kept_patches)
    grid = grid_of(pixels, patch_size)
    row, col = divmod(patch, grid[1])
    top, left = row * patch_size, col * patch_size
    first = calls["block"].given[0]  # [N, D]
    found = {
        "pixels": pixels[0, :, top : top + patch_size, left : left + patch_size],
        "embedded": calls["embed"].returned[0, patch],
        "position": vit.pos_embed_for(grid)[0, vit.num_pos_embed_prefix + patch],
        "token": first[token_of(vit, patch, kept_patches)],
    }
    if vit.config.class_token:
        found["class_token"] = first[0]
    return _to_cpu(found)


@torch.inference_mode()
def describe_block(
    model: TracedViT,
    pixels: Tensor,
    patch: int | None,
    block: int,
    head: int,
    *,
    patch_size: int,
    kept_patches: Tensor | None = None,
) -> Numbers:
    """What one block does to one token (the class token for None): attention, its residual, the MLP, its residual.

    Returns:
        - ``before``: ``[D]``: the token before the block; ``normed``: after the block's first norm.
        - ``query`` ``[d]`` of the head; ``scores`` ``[N]``: ``q k^T / sqrt(d)``; ``weights`` ``[N]``: their softmax.
        - ``keyed``: indices ``[n]`` of the tokens with the largest weights, largest first; ``keys`` and ``values``
          ``[n, d]`` of these.
        - ``head_output`` ``[d]``: the weighted sum of all values; ``all_weights`` ``[H, N]``; ``concatenated`` ``[D]``.
        - ``attention`` ``[D]``: what the attention adds; ``between`` ``[D]``: the token after it.
        - ``hidden``: ``[hidden]``: the MLP's activations after the GELU; ``mlp`` ``[D]``: what the MLP adds; ``after``
          ``[D]``: the token after the block.
    """
    vit = _own(model)
    token = 0 if patch is None else token_of(vit, patch, kept_patches)
    part = cast("Block", vit.blocks[block])
    names = {"norm1": part.norm1, "qkv": part.attn.qkv, "proj": part.attn.proj, "ls1": part.ls1, "norm2": part.norm2}
    with record_calls(block=part, fc2=part.mlp.fc2, ls2=part.ls2, **names) as calls:
        model(pixels, patch_size=patch_size, kept_patches=kept_patches)
    given = {name: call.given[0, token] for name, call in calls.items()}
    returned = {name: call.returned[0, token] for name, call in calls.items()}
    heads = vit.config.num_heads
    q, k, v = calls["qkv"].returned[0].unflatten(1, (3, heads, -1)).permute(1, 2, 0, 3)  # each [H, N, d]
    scores = attention_scores(q[:, token : token + 1], k)[:, 0]  # [H, N]
    weights = attention_rows(q[:, token : token + 1], k)[:, 0]
    keyed = weights[head].argsort(descending=True, stable=True)[:NUM_KEYS]
    return _to_cpu(
        {
            "before": given["block"],
            "normed": returned["norm1"],
            "query": q[head, token],
            "scores": scores[head],
            "weights": weights[head],
            "keyed": keyed,
            "keys": k[head, keyed],
            "values": v[head, keyed],
            "head_output": given["proj"].unflatten(0, (heads, -1))[head],
            "all_weights": weights,
            "concatenated": given["proj"],
            "attention": returned["ls1"],
            "between": given["norm2"],
            "hidden": given["fc2"],
            "mlp": returned["ls2"],
            "after": returned["block"],
        }
    )


def _own(model: TracedViT) -> ViT:
    """The network, if it is one of this package, whose parts the tour names; otherwise ``InputError``."""
    if not isinstance(model.module, ViT):
        raise InputError(
            "Step by step shows the networks of this package, and this one is of another library: choose another model."
        )
    return model.module


def grid_of(pixels: Tensor, patch_size: int) -> tuple[int, int]:
    """Rows and columns of patches."""
    return pixels.shape[2] // patch_size, pixels.shape[3] // patch_size


def token_of(vit: ViT, patch: int, kept_patches: Tensor | None) -> int:
    """The index of a kept patch's token in the sequence."""
    order = None if kept_patches is None else kept_patches[0].tolist()
    return vit.config.num_prefix_tokens + (patch if order is None else order.index(patch))


def _classes(depths: Tensor, logits: Tensor) -> Numbers:
    """The prediction of each depth, from logits ``[blocks + 1, K]``, and the largest of the final ``[K]``."""
    probabilities = depths.softmax(-1)
    top, index = probabilities.max(-1)
    order = logits.argsort(descending=True, stable=True)[:NUM_CLASSES]
    return {
        "depth_class": index,
        "depth_top": top,
        "depth_final": probabilities[:, order[0]],
        "classes": order,
        "logits": logits[order],
        "logsumexp": logits.logsumexp(0, keepdim=True),
    }


def _on_grid(values: Tensor, shape: tuple[int, int], kept_patches: Tensor | None, *, only_kept: bool = False) -> Tensor:
    """Values of the kept patches ``[K]`` (of all patches with ``only_kept``) on the grid, with 0 at dropped ones."""
    if kept_patches is None:
        return values
    kept = kept_patches[0]
    grid = values.new_zeros(shape[0] * shape[1])
    grid[kept] = values[kept] if only_kept else values
    return grid


def _to_cpu(found: Numbers) -> Numbers:
    return {name: tensor.detach().cpu() for name, tensor in found.items()}
