"""Spectral clustering (Ng, Jordan and Weiss, 2001), with the number of groups by the eigengap (von Luxburg, 2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree

from vit_demo.features import choose_seeds, kmeans

MOST_GROUPS = 8
NEIGHBOURS = 10
MOST_POINTS = 3000  # points that are clustered; of more, evenly chosen ones, and the others join the nearest of these


def spectral_clusters(points: NDArray[np.floating], seed: int = 0) -> NDArray[np.int64]:
    """The group of each point ``[N, D]``, int64 ``[N]`` from 0; the seed makes it deterministic.

    Points are neighbours if one is among the ten nearest of the other; how near counts by the distance to the seventh
    of each (Zelnik-Manor and Perona, 2004).
    """
    if len(points) > MOST_POINTS:
        few = evenly(points)
        return spectral_clusters(few, seed)[cKDTree(few).query(points)[1]]
    count, most = len(points), min(MOST_GROUPS, len(points) // 4)
    if most < 2 or np.ptp(points, axis=0).max(initial=0) < 1e-9:
        return np.zeros(count, np.int64)
    near = min(NEIGHBOURS, count - 1)
    distances, others = cKDTree(points).query(points, near + 1)  # itself among them
    scale = np.maximum(distances[:, min(7, near)], 1e-9)
    rows = np.repeat(np.arange(count), near + 1)
    weights = np.exp(-(distances.ravel() ** 2) / (scale[rows] * scale[others.ravel()]))
    graph = csr_array((weights, (rows, others.ravel())), shape=(count, count))
    graph = graph.maximum(graph.T)
    degrees = 1 / np.sqrt(graph.sum(1))
    graph = graph.multiply(degrees[:, None]).multiply(degrees[None]).tocsr()
    start = np.random.default_rng(seed).standard_normal(count)
    values, vectors = eigsh(graph, most + 1, v0=start, which="LA")  # the largest last
    groups = 1 + int(np.diff(values)[::-1].argmax())
    embedded = vectors[:, -groups:]
    embedded = embedded / np.maximum(np.linalg.norm(embedded, axis=1, keepdims=True), 1e-12)
    return kmeans(embedded, choose_seeds(embedded, groups, seed))


def evenly(points: NDArray[np.floating]) -> NDArray[np.floating]:
    """Chooses at most ``MOST_POINTS`` of some points, evenly."""
    return points[np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).astype(int)]
