"""What can be read from the tokens of a network at each depth. Imports torch, the network, and scipy for k-means."""

from vit_demo.features.kmeans import MAX_SEGMENTS, MIN_SEGMENTS, choose_seeds, kmeans
from vit_demo.features.patch_tokens import (
    PatchTokens,
    block_tokens,
    logit_lens,
    norm_outliers,
    patch_tokens,
    strongest_components,
)
from vit_demo.features.pca import MAIN_COMPONENTS, ReducedTokens, foreground, pca, reduce_tokens
from vit_demo.features.similarity import similarity

__all__ = [
    "MAIN_COMPONENTS",
    "MAX_SEGMENTS",
    "MIN_SEGMENTS",
    "PatchTokens",
    "ReducedTokens",
    "block_tokens",
    "choose_seeds",
    "foreground",
    "kmeans",
    "logit_lens",
    "norm_outliers",
    "patch_tokens",
    "pca",
    "reduce_tokens",
    "similarity",
    "strongest_components",
]
