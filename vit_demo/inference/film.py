"""The numbers of the page's film: what every token of one pass is, and attends to, from block to block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_demo.defaults import NUM_CLASSES
from vit_demo.features import strongest_components
from vit_demo.inference.forward import MOST_EARLY
from vit_demo.inference.result import Query, Result
from vit_demo.inference.sequence import query_token
from vit_demo.methods.attention import attention_from
from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.scores import to_scores
from vit_demo.trace import Trace

NUM_PAIRS = 12  # pairs of patches whose attention is returned for each block: more arrows could not be told apart
NUM_COMPONENTS, COMPONENTS_OF_ALL = 8, 2048
"""Components of each token that are returned, and of all tokens of a depth together; there is always one of each."""


@dataclass(frozen=True)
class Film:
    """One pass as a film, of T tokens in the order of the sequence, prefix included, without dropped patches.

    Attributes:
        attention: float32 ``[blocks, T]``: what the query attends to, as in ``Exploration.attention``.
        pairs: int64 ``[blocks, P, 2]``: the patches, by their tokens, of which the first attends most to the second.
        shares: float32 ``[blocks, P]``: the attention of each pair, mean of the heads, strongest first.
        components: int64 ``[C]``: the components that vary most over tokens and depths, in ascending order.
        tokens: float32 ``[blocks + 1, T, C]``: these of each token before the first block and after each, not normed.
        width: D, how many there are.
        classes: int64 ``[K]``: all classes if there are few; else the predicted ones and those that lead at any depth.
        answers: float32 ``[blocks + 1, K]``: what is said of these classes before the first block and after each.
    """

    attention: NDArray[np.float32]
    pairs: NDArray[np.int64]
    shares: NDArray[np.float32]
    components: NDArray[np.int64]
    tokens: NDArray[np.float32]
    width: int
    classes: NDArray[np.int64]
    answers: NDArray[np.float32]


def film(ex: Result, query: Query = None) -> Film:
    """The numbers of a film, from the trace of a result and one more pass; ``query`` as in ``Exploration.attention``.

    ``InputError`` if there is no such patch, or the tokens between the blocks are not seen.
    """
    trace, token = ex.trace, query_token(ex, -1, None, query)
    rows = [attention_from(trace, block, token)[0].mean(0) for block in range(trace.num_blocks)]
    pairs = [strongest_pairs(trace, block) for block in range(trace.num_blocks)]
    count = min(NUM_COMPONENTS, max(1, COMPONENTS_OF_ALL // trace.num_tokens))
    tokens, components, width, logits = ex.run(strongest_components, count)
    answers = to_scores(logits[:, : ex.preset.config.num_classes], ex.preset.scores)
    classes = torch.arange(answers.shape[1])
    if len(classes) > MOST_EARLY:
        first = answers[-1].argsort(descending=True, stable=True)[:NUM_CLASSES]
        classes = torch.tensor(list(dict.fromkeys([*first.tolist(), *answers.argmax(1).tolist()])))
    return Film(
        attention=torch.stack(rows).float().cpu().numpy(),
        pairs=torch.stack([places for places, _ in pairs]).cpu().numpy(),
        shares=torch.stack([shares for _, shares in pairs]).cpu().numpy(),
        components=components.numpy(),
        tokens=tokens.numpy(),
        width=width,
        classes=classes.numpy(),
        answers=answers[:, classes].numpy(),
    )


def strongest_pairs(trace: Trace, block: int, count: int = NUM_PAIRS) -> tuple[Tensor, Tensor]:
    """The pairs of different patches with the most attention: tokens ``[P, 2]``, from and to, and shares ``[P]``."""
    prefix, n = trace.num_prefix_tokens, trace.num_tokens
    count = min(count, (n - prefix) * (n - prefix - 1))
    shares, places = [], []
    for part, rows in iter_attention_rows(trace.q[block], trace.k[block]):
        mean = rows[0].mean(0)  # [chunk, N]
        queries = torch.arange(part.start, part.stop, device=mean.device)
        mean[:, :prefix] = -1
        mean[queries < prefix] = -1
        mean[queries - part.start, queries] = -1
        best = mean.flatten().topk(min(count, mean.numel()))
        shares.append(best.values)
        places.append(best.indices + part.start * n)
    found = torch.cat(shares).topk(count)
    flat = torch.cat(places)[found.indices]
    return torch.stack([flat // n, flat % n], 1), found.values
