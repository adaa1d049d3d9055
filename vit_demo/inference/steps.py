"""The numbers behind the page's guided tour: what one forward pass does to one patch, step by step.

Every function runs a network in eval mode on ``pixels`` ``[1, C, height, width]`` and takes the numbers from what goes
into the network's own modules and what comes out of them, whatever their names: a part is known by its numbers (see
``step_parts``), and one that is not found is left out. Scores and attention weights are the exception,
because the fused kernel never writes them down: they are computed from the queries and keys of that pass, as for every
attention map. ``kept_patches`` is as in ``TracedViT.forward``; a described patch, counted row by row, must be among
them. All raise ``InputError`` if the tokens between the blocks are not seen, or blocks have more attentions than one.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.defaults import NUM_CLASSES
from vit_demo.errors import InputError
from vit_demo.features.similarity import compress
from vit_demo.inference.step_parts import (
    Event,
    Numbers,
    branches,
    enter,
    filters,
    grid_of,
    positions,
    watch,
    watch_block,
)
from vit_demo.model.pooling import pool_tokens
from vit_demo.trace import Trace, TracedViT
from vit_demo.trace.attention_mode import attention_rows, attention_scores

Facts = dict[str, str | int | bool]

MAX_FILTERS = 24  # filters of the patch embedding that are returned, those of the largest norm
MAX_FILTER_VALUES = 20_000  # weights of the returned filters together; large filters are fewer, but at least four
NUM_KEYS = 4  # tokens with the largest attention weights whose keys and values are returned


@torch.no_grad()
def describe_network(
    model: TracedViT, pixels: Tensor, *, patch_size: int, kept_patches: Tensor | None = None
) -> tuple[Facts, Numbers]:
    """What all patches share: filters, positions, the prediction after each block and the classifier head.

    Returns:
        The shape of the network:

        - ``own``: whether it is of this package; ``width`` of a token, ``head_width`` of a value.
        - ``hidden``: numbers within the MLP, 0 if not seen; ``gated``: whether linear maps are multiplied for them.
        - ``positions``: how a token gets its place, see ``step_parts.positions``.
        - ``mixes_heads``: whether a linear map follows the heads.

        Its numbers:

        - ``filters``: indices ``[F]`` of the filters of largest norm, ``kernel``: their weights ``[F, C, p, p]``,
          ``bias``: ``[F]``.
        - ``positions``: ``[rows * cols, r]`` float16; products of two rows are the cosine similarities of the position
          embeddings, within ``features.similarity.MAX_ERROR``.
        - ``contrast``: ``[rows * cols]``: standard deviation of the pixels of each patch; 0 for a dropped one.
        - ``pooled``: ``[num_features]``: what the classifier head reads, or else the output.
        - With classes: ``depth_class`` and ``depth_top`` ``[blocks + 1]``: the most likely class before the first block
          and after each, and its probability; ``classes``, ``logits`` ``[up to 5]``: the most likely classes, most
          likely first; ``logsumexp``: ``[1]``, of all logits.
        - Without classes: ``depth_similarity`` ``[blocks + 1]``: cosine similarity of the output of each depth to the
          last; ``alike`` ``[rows * cols]``: cosine similarity of each patch's last token to the output, if that is a
          token or a mean of tokens; 0 for a dropped patch.
    """
    _check_blocks(model)
    grid, recording, read = grid_of(pixels, patch_size), Trace(record_tokens=True), list[Tensor]()
    prefix = model.config.num_prefix_tokens
    index = prefix if kept_patches is None or model.leaves_out else prefix + int(kept_patches[0, 0])  # a patch
    with (
        watch([model.head], lambda _, enters, x: read.append(x) if enters else None),
        watch_block(model, 0, index, recording) as events,
    ):
        entry = enter(model, pixels, recording, patch_size=patch_size, kept_patches=kept_patches)
    first, second = (x[0, prefix] for x in recording.tokens[:2])
    parts, gated = branches(events, first, second)
    how, added = positions(model, entry, pixels, patch_size)
    facts: Facts = {
        "own": model.is_own,
        "width": len(first),
        "head_width": recording.v[0].shape[3],
        "hidden": len(parts.get("hidden", ())),
        "gated": gated,
        "positions": how,
        "mixes_heads": any(model.structure.projections) or "attention" not in parts,
    }
    patches = pixels[0].unfold(1, patch_size, patch_size).unfold(2, patch_size, patch_size)  # [C, rows, cols, p, p]
    contrast = patches.flatten(3).std(-1, correction=0).mean(0).flatten()
    found = {"contrast": _on_grid(contrast, grid, kept_patches, only_kept=True)}
    if added is not None:
        found["positions"] = compress(added)
    if (known := filters(model, entry, pixels, patch_size)) is not None:
        kernel, bias = known
        count = min(len(kernel), MAX_FILTERS, max(4, MAX_FILTER_VALUES // kernel[0].numel()))
        largest = kernel.flatten(1).norm(dim=1).argsort(descending=True, stable=True)[:count]
        found |= {"filters": largest, "kernel": kernel[largest], "bias": bias[largest]}
    output = entry.output[0].float()
    depths = model.forward_head(torch.cat(recording.tokens)).float()  # [blocks + 1, K]
    if model.config.num_classes:
        found |= _classes(model.to_scores(depths), output)
        if read and read[-1].dim() == 2 and torch.allclose(model.head(read[-1])[0].float(), output):
            found["pooled"] = read[-1][0]
        return facts, _to_cpu(found)
    found |= {"pooled": output, "depth_similarity": F.cosine_similarity(depths, depths[-1:])}
    tokens = model.final_norm(recording.tokens[-1]).float()  # [1, N, D]
    pooled = pool_tokens(tokens, model.config.pool, prefix)[0]
    if pooled.shape == output.shape and torch.allclose(pooled, output, rtol=1e-3, atol=1e-5):
        alike = F.cosine_similarity(tokens[0, prefix:], output[None])
        found["alike"] = _on_grid(alike, grid, kept_patches)
    return facts, _to_cpu(found)


@torch.no_grad()
def describe_patch(
    model: TracedViT, pixels: Tensor, patch: int, *, patch_size: int, kept_patches: Tensor | None = None
) -> Numbers:
    """How one patch becomes a token; arguments as in ``describe_network``.

    Returns:
        ``pixels`` ``[C, p, p]``, normalised; ``embedded`` ``[D]``: the patch embedding; ``position`` ``[D]``: its
        position embedding; ``token`` ``[D]``, which enters the first block: their sum, unless ``positions`` of
        ``describe_network`` says otherwise; ``class_token`` ``[D]``, with its position, if the model has one.
    """
    _check_blocks(model)
    recording = Trace(record_tokens=True)
    entry = enter(model, pixels, recording, patch_size=patch_size, kept_patches=kept_patches)
    row, col = divmod(patch, grid_of(pixels, patch_size)[1])
    top, left = row * patch_size, col * patch_size
    first = recording.tokens[0][0]  # [N, D]
    found = {
        "pixels": pixels[0, :, top : top + patch_size, left : left + patch_size],
        "token": first[token_of(model, patch, kept_patches)],
    }
    if entry.embedded is not None:
        found["embedded"] = entry.embedded[patch]
    if (added := positions(model, entry, pixels, patch_size)[1]) is not None:
        found["position"] = added[patch]
    if model.config.class_token:
        found["class_token"] = first[0]
    return _to_cpu(found)


@torch.no_grad()
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
        - ``before``, ``after`` ``[D]``: the token before the block and after it.
        - ``scores`` ``[N]``: ``q k^T / sqrt(d)`` of the head, with what a mask or relative positions add; ``weights``
          ``[N]``: their softmax; ``query`` ``[d]``, if nothing else is part of the scores.
        - ``keyed``: indices ``[n]`` of the tokens with the largest weights, largest first; ``values`` ``[n, e]`` of
          these, and ``keys`` ``[n, d]`` beside ``query``.
        - ``head_output`` ``[e]``: the weighted sum of all values; ``all_weights`` ``[H, N]``; ``concatenated``
          ``[H * e]``.
        - As far as they are seen, ``attention`` ``[D]``: what the attention adds; ``between`` ``[D]``: the token after
          it; ``hidden``: ``[hidden]``: the MLP's activations; ``mlp`` ``[D]``: what the MLP adds.
    """
    _check_blocks(model)
    recording = Trace(record_tokens=True)
    token = token_of(model, patch, kept_patches)
    index = token_of(model, patch, kept_patches if model.leaves_out else None)  # while the pass runs
    with watch_block(model, block, index, recording) as events:
        model(pixels, recording, patch_size=patch_size, kept_patches=kept_patches)
    q, k, v = recording.q[block][0], recording.k[block][0], recording.v[block][0]  # each [H, N, d]
    before, after = (x[0, token] for x in recording.tokens[block : block + 2])
    query = q[:, token : token + 1]
    scores = attention_scores(query, k)[:, 0]  # [H, N]
    weights = attention_rows(query, k)[:, 0]
    keyed = weights[head].argsort(descending=True, stable=True)[:NUM_KEYS]
    concatenated = _as_seen(events, (weights[:, None] @ v.float()).flatten())
    found = {
        "before": before,
        "scores": scores[head],
        "weights": weights[head],
        "keyed": keyed,
        "values": v[head, keyed],
        "head_output": concatenated.unflatten(0, (len(v), -1))[head],
        "all_weights": weights,
        "concatenated": concatenated,
        "after": after,
        **branches(events, before, after)[0],
    }
    if q.shape[-1] == v.shape[-1]:  # wider where a mask is folded in
        found |= {"query": q[head, token], "keys": k[head, keyed]}
    return _to_cpu(found)


def _check_blocks(model: TracedViT) -> None:
    if not model.shows_tokens or len(model.blocks) != model.config.depth:
        raise InputError(
            "Step by step needs blocks that get and return the tokens, with one attention each: choose another model."
        )


def _as_seen(events: list[Event], wanted: Tensor) -> Tensor:
    """What the network's kernel made of the values, if a module reads it; else what is computed, which is as exact."""
    entered = (x for _, enters, x in events if enters and x.shape == wanted.shape)
    return next((x for x in entered if torch.allclose(x.float(), wanted, rtol=1e-4, atol=1e-5)), wanted)


def token_of(model: TracedViT, patch: int | None, kept_patches: Tensor | None) -> int:
    """The index of a kept patch's token in the sequence; that of the class token for None."""
    if patch is None:
        return 0
    order = None if kept_patches is None else kept_patches[0].tolist()
    return model.config.num_prefix_tokens + (patch if order is None else order.index(patch))


def _classes(probabilities: Tensor, logits: Tensor) -> Numbers:
    """The prediction of each depth, from ``[blocks + 1, K]``, and the largest of the final logits ``[K]``."""
    top, index = probabilities.max(-1)
    order = logits.argsort(descending=True, stable=True)[:NUM_CLASSES]
    return {
        "depth_class": index,
        "depth_top": top,
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
