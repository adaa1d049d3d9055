"""The tokens of a block for the page, sent once, so that hovering over a patch or changing k takes no request.

The reply for T tokens, of one picture or of two together, has arrays as base64 of little-endian bytes:

- ``levels`` int16 ``[T, K]`` and ``peaks`` float32 ``[K]``, where component = levels / 32767 * peak; ``mean`` float32
  ``[K]``, ``offsets`` and ``lengths`` float32 ``[T]``: see ``features.ReducedTokens``, from which cosine similarity is
  exact to 0.001; ``scale``; ``shares`` of the first three;
- ``foreground``: PCA of the foreground alone, ``scores`` float32 ``[T, 3]``, NaN for the background, and ``shares``;
- ``segments`` uint8 ``[k, T]``: k-means with one segment, two, and so on, up to twelve;
- ``lowest``: the tenth percentile of the cosine similarities of all pairs, where the colours begin;
- ``width``: D, the length of a token;
- ``norms`` float32 ``[T]``, and ``outliers``, the indices of the tokens that are far longer than the rest;
- ``classes`` uint32 and ``probabilities`` float32, ``[T, 3]``: what the head predicts from each token alone, most
  likely first; ``names`` of these classes; all empty for a model without classes;
- ``pictures``: the ``grid``, ``dropped`` patches and ``size`` of each, and the ``image`` of the second as a data URL.

K is 64, or more where cosine similarity needs it: 98 for photos-tiny, so that its 100 patches take 27 kB.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, SkipValidation, ValidationInfo

from vit_demo import features
from vit_demo.errors import InputError
from vit_demo.inference import patch_features
from vit_demo.inference.exploration import Exploration
from vit_demo.service.job import Turn
from vit_demo.service.source import pool_of
from vit_demo.web.requests import parse
from vit_demo.web.requests.parse import Json
from vit_demo.web.requests.payload import data_url, encode
from vit_demo.weights import costs

if TYPE_CHECKING:
    from vit_demo.web.requests.maps import RequestedResult


MAX_SENT_TOKENS = 4096  # patches, of both pictures together, whose tokens fit in a reply
LONG_SECONDS = 1.0  # work on the tokens that takes longer counts as slow
CLASSES = 3  # classes that are sent for each patch

_FULL_LEVEL = 32767
_SAMPLE = 512
_LOW = 0.1


def _second_picture(sent: Any, info: ValidationInfo) -> parse.ResultRequest:
    """The request for a second picture, which is sent as in ``payload.source_of``, by the same model as the first."""
    if not isinstance(sent, dict):
        raise InputError("The second picture has no source: choose it again.")
    first = info.context
    assert isinstance(first, parse.ResultRequest)
    same = {"preset": first.preset, "patch_size": first.patch_size, "fit": first.fit, "dropped": []}
    silent = [list(head) for head in first.silent]
    return parse.ResultRequest.parse({**sent, **same, "words": list(first.words), "silent": silent})


@dataclass(frozen=True)
class TokenRequest:
    """Which tokens are wanted.

    Attributes:
        block: From 0.
        other: A second picture, for the same model and patch size, or None.
    """

    block: parse.Block
    other: Annotated[SkipValidation[parse.ResultRequest | None], BeforeValidator(_second_picture)] = None


def tokens_result(requested: RequestedResult, request: TokenRequest) -> Generator[Turn, None, Json]:
    """The tokens of a picture, or of two together; ``InputError`` if there is no such block, or too many tokens."""
    preset, size, results = requested.preset, requested.request.patch_size, [requested.explore()]
    if request.other is not None:
        yield request.other.source.turn(preset, size)
        results.append(replace(requested, request=request.other).explore())
    cost = costs.compare_tokens(preset.config, size, len(results))
    yield Turn(pool_of(preset, slow=cost.seconds > LONG_SECONDS, seconds=cost.seconds), cost.nbytes, cost.seconds)
    return token_payload(results, request.block)


def token_payload(results: list[Exploration], block: int) -> Json:
    """The reply for one or two results of one model; raises the same errors as ``tokens_result``."""
    if sum(rows * columns for rows, columns in (result.grid for result in results)) > MAX_SENT_TOKENS:
        raise InputError("These are too many patches to compare: choose a larger patch size, or one picture.")
    depth = patch_features.depth_after(results[0], block)
    tokens = [patch_features.patch_tokens(result) for result in results]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name)[depth].numpy() for part in tokens])

    reduced = features.reduce_tokens(joined("tokens"))
    seeds = features.choose_seeds(reduced.main)
    segments = [features.kmeans(reduced.main, seeds[: 1 + last]) for last in range(len(seeds))]
    edges = np.concatenate([patch_features.edge_patches(result) for result in results])
    norms, classes = joined("norms"), joined("classes")[:, :CLASSES]
    labels = results[0].labels
    return {
        **_levels(reduced.components),
        "mean": encode(reduced.mean),
        "offsets": encode(reduced.offsets),
        "lengths": encode(reduced.lengths),
        "scale": reduced.scale,
        "width": tokens[0].tokens.shape[2],
        "shares": reduced.shares[:3].tolist(),
        "foreground": _foreground(reduced.main, edges),
        "segments": encode(np.stack(segments).astype(np.uint8)),
        "lowest": _low_similarity(reduced.unit_vectors()),
        "norms": encode(norms),
        "outliers": np.flatnonzero(features.norm_outliers(norms)).tolist(),
        "classes": encode(classes.astype(np.uint32)),
        "probabilities": encode(joined("probabilities")[:, :CLASSES].astype(np.float32)),
        "names": {str(index): labels[index] for index in np.unique(classes).tolist()},
        "pictures": [_picture(result, with_image=place > 0) for place, result in enumerate(results)],
    }


def _levels(components: np.ndarray) -> dict[str, str]:
    """Components as whole numbers relative to their peaks: as short as half precision, and more precise."""
    peaks = np.abs(components).max(0)
    shares = components / np.maximum(peaks, np.finfo(np.float32).tiny)
    return {"levels": encode((_FULL_LEVEL * shares).round().astype(np.int16)), "peaks": encode(peaks)}


def _foreground(main: np.ndarray, edges: np.ndarray) -> Json:
    """The principal components of the foreground, and their shares of the variance."""
    kept = features.foreground(main[:, 0], edges)
    scores = features.pca(main, 3, kept)
    total = max(main[kept].var(0).sum(), np.finfo(np.float32).tiny)
    return {"scores": encode(scores), "shares": (scores[kept].var(0) / total).tolist()}


def _picture(result: Exploration, with_image: bool) -> Json:
    picture: Json = {
        "grid": list(result.grid),
        "dropped": [row * result.grid[1] + col for row, col in result.dropped],
        "size": list(result.image.size),
    }
    return {**picture, "image": data_url(result.image)} if with_image else picture


def _low_similarity(unit: np.ndarray) -> float:
    """The tenth percentile of the cosine similarities of all pairs, from an even sample of the tokens."""
    sample = unit[:: 1 + len(unit) // _SAMPLE]
    return float(np.quantile(sample @ sample.T, _LOW))
