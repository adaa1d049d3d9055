"""k-means segments of patch tokens: Lloyd's algorithm, started by greedy k-means++."""

import numpy as np
from numpy.typing import NDArray

MIN_SEGMENTS, MAX_SEGMENTS = 2, 12
ITERATIONS = 100  # Lloyd's algorithm usually converges within thirty

_TRIALS = 4


def choose_seeds(points: NDArray[np.floating], count: int = MAX_SEGMENTS, seed: int = 0) -> NDArray[np.int64]:
    """Chooses the points ``[N, K]`` from which k-means starts: greedy k-means++ (Arthur and Vassilvitskii, 2007).

    Each next point is drawn with a probability proportional to its squared distance from the nearest one chosen; of
    four draws, the one that lowers the sum of these distances most is taken. So the first k of the result, int64
    ``[min(count, N)]``, are a choice for k segments, for every k.
    """
    rng = np.random.default_rng(seed)
    wide = points.astype(np.float64)
    chosen = [int(rng.integers(len(wide)))]
    nearest = _distances(wide, chosen[0])
    while len(chosen) < min(count, len(wide)):
        if nearest.sum() <= 0:  # all points lie on those chosen: any others will do
            left = sorted(set(range(len(wide))) - set(chosen))
            return np.array(chosen + left[: count - len(chosen)])
        draws = rng.choice(len(wide), _TRIALS, p=nearest / nearest.sum())
        found = [np.minimum(nearest, _distances(wide, draw)) for draw in draws]
        best = int(np.argmin([distances.sum() for distances in found]))
        chosen.append(int(draws[best]))
        nearest = found[best]
    return np.array(chosen)


def kmeans(points: NDArray[np.floating], seeds: NDArray[np.integer]) -> NDArray[np.int64]:
    """The segment of each point ``[N, K]``, int64 ``[N]``: Lloyd's algorithm from points with the indices ``seeds``."""
    from scipy.cluster.vq import vq  # half of what importing the package takes besides torch, and rarely needed

    wide = points.astype(np.float64)
    centres, labels = wide[seeds], np.full(len(wide), -1)
    for _ in range(ITERATIONS):
        previous, labels = labels, vq(wide, centres)[0]
        if np.array_equal(labels, previous):
            break
        for segment in np.unique(labels):  # one that lost all its points keeps its centre
            centres[segment] = wide[labels == segment].mean(0)
    return labels.astype(np.int64)


def _distances(points: NDArray[np.float64], index: int) -> NDArray[np.float64]:
    return ((points - points[index]) ** 2).sum(1)
