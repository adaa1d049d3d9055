"""Groups of pictures whose evidence is alike, and which of them rest on something beside the object.

Clusters of maps are proposals. One is suspicious only if its evidence lies where objects rarely do, at a corner, an
edge, the border, or beside the object if that is known, far more than that of the pictures it is compared with.

What a map says of one place has no zero of its own: a network that wants a mark may give its absence much evidence
against the class, and the mark none. So places are compared by what a map has beyond the mean of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import cKDTree

from vit_demo.auditing.clusters import evenly, spectral_clusters
from vit_demo.auditing.measures import shares_of

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]
Table = Sequence[dict[str, Any]]

LEAST_PICTURES = 12  # pictures of a class in which groups are looked for
LEAST_GROUP = 8  # pictures of a suspicious group; at least three others must be left to compare them with
LEAST_GAP = 3.0  # standard deviations, the group's and the others' together, between their means at a place
LEAST_RATIO = 2.0  # how many times the share of the evidence at a place must be that of the other pictures
LEAST_EXCESS = 0.1  # by how much it must also exceed the place's share of the picture
BESIDE = "surroundings of the object"


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """Pictures of one class whose evidence is alike.

    Attributes:
        label: The class.
        files: Names of the pictures, the most typical first.
        accuracy: The share that is right, of those whose truth is known; None if none is.
        mean_map: Mean of the maps, float32 ``[rows, cols]``, in the method's unit.
        difference: That less the mean of the maps that they are compared with.
        why: One sentence: what sets it apart.
        is_suspicious: Whether its evidence lies where objects rarely are, far more than in other pictures.
        indices: Positions of ``files`` in the table.
        suspicion: What groups are ordered by.
    """

    label: str
    files: list[str]
    accuracy: float | None
    mean_map: NDArray[np.float32]
    difference: NDArray[np.float32]
    why: str
    is_suspicious: bool
    indices: Indices
    suspicion: float


class _Finding(NamedTuple):
    """A place with far more evidence of some pictures, ``inside``, than of others, and more than by chance."""

    place: str
    gap: float
    excess: float
    inside: Indices
    outside: Indices
    shares: tuple[float, float]


def groups_of(table: Table, maps: Sequence[Floats], tokens: Sequence[Floats], seed: int = 0) -> list[Group]:
    """The groups of every class with enough pictures, the most suspicious first; see ``Audit``."""
    values = same_grid(maps)
    shares = shares_of(values)
    classes = np.array([class_of(row) if one.any() else "" for row, one in zip(table, shares, strict=True)])
    found = list[Group]()
    for label in sorted(set(classes.tolist()) - {""}):
        own, others = np.flatnonzero(classes == label), np.flatnonzero((classes != label) & (classes != ""))
        if len(own) < LEAST_PICTURES:
            continue
        findings = _findings(table, values, own, others)
        if first := max(findings, key=lambda finding: finding.excess, default=None):
            found.append(_group(table, values, label, first.inside, first.outside, first))
        views = {"lies in other places": np.sqrt(shares[own].reshape(len(own), -1))}
        if len(tokens) and tokens[0].size:
            views["shows something else"] = np.stack([tokens[index] for index in own.tolist()]).astype(np.float64)
        for about, points in views.items():
            clusters = spectral_clusters(points, seed)
            for number in np.unique(clusters) if clusters.any() else ():
                found.append(_group(table, values, label, own[clusters == number], own[clusters != number], about))
    return sorted(found, key=lambda group: -group.suspicion)


def _findings(table: Table, values: Floats, own: Indices, others: Indices) -> Iterator[_Finding]:
    """Places where some of a class's pictures have far more evidence than the others; beside the object, all may."""
    maps = values[own]
    for place, mask in places_of(maps.shape[1:]).items():
        evidence, area = maps[:, mask].sum(1), float(mask.mean())
        if (high := split(evidence)).any():
            apart = shares_of(maps - maps[~high].mean(0))[:, mask].sum(1)
            yield from _compared(place, area, area + LEAST_EXCESS, own, high, evidence, apart)
    on, areas = (np.array([row[name] for row in table], float) for name in ("on_object", "object_area"))
    own, others = (part[np.isfinite(on[part])] for part in (own, others))
    if len(own):
        area, every = 1 - float(np.nanmean(areas)), np.concatenate([own, others])
        for pictures, high in ((every, np.arange(len(every)) < len(own)), (own, split(1 - on[own]))):
            beside = 1 - on[pictures]
            yield from _compared(BESIDE, area, area / 2, pictures, high, beside, beside)


def _compared(
    place: str, area: float, least: float, pictures: Indices, high: NDArray[np.bool_], evidence: Floats, shares: Floats
) -> Iterator[_Finding]:
    """What was found at a place, if the evidence there and its shares differ enough."""
    if high.sum() < LEAST_GROUP or (~high).sum() < 3:
        return
    more, less = evidence[high], evidence[~high]
    gap = (more.mean() - less.mean()) / max(more.std() + less.std(), 1e-2 * np.abs(evidence).max())
    share, other = float(shares[high].mean()), float(shares[~high].mean())
    if gap >= LEAST_GAP and share >= max(LEAST_RATIO * other, least):
        yield _Finding(place, float(gap), share - area, pictures[high], pictures[~high], (share, other))


def _group(table: Table, values: Floats, label: str, inside: Indices, outside: Indices, found: _Finding | str) -> Group:
    mean, other = values[inside].mean(0), values[outside].mean(0)
    accuracy, others = _accuracy(table, inside), _accuracy(table, outside)
    count, total = len(inside), len(inside) + len(outside)
    if isinstance(found, _Finding):
        is_all = class_of(table[outside[0]]) != label
        of = "the evidence" if found.place == BESIDE else "what sets their evidence apart"
        why = (
            f"Reads the {found.place} in {f'all {count}' if is_all else f'{count} of {total}'} pictures of {label}: "
            f"{percent(found.shares[0])} of {of} is there, "
            f"{percent(found.shares[1])} in {'other classes' if is_all else 'the others'}"
        )
        suspicion = 10 + found.gap
    else:
        why = f"In {count} of {total} pictures of {label} the evidence {found} than in the others"
        far = float(np.abs(shares_of(mean) - shares_of(other)).sum() / 2)
        differs = 0.0 if accuracy is None or others is None else abs(accuracy - others)
        suspicion = (far + differs) * (1 - count / total)
    if accuracy is not None and others is not None:
        why += f"; {percent(accuracy)} of them are right, and {percent(others)} of the others"
    order = inside[np.argsort(np.abs(values[inside] - mean).sum((1, 2)), kind="stable")]
    return Group(
        label=label,
        files=[table[index]["file"] for index in order],
        accuracy=accuracy,
        mean_map=mean.astype(np.float32),
        difference=(mean - other).astype(np.float32),
        why=f"{why}.",
        is_suspicious=isinstance(found, _Finding),
        indices=order,
        suspicion=suspicion,
    )


def class_of(row: dict[str, Any]) -> str:
    """The class that the map of a row is about."""
    return str(row["truth"] or row["prediction"])


def percent(share: float) -> str:
    """A share for people."""
    return f"{100 * share:.0f} %"


def _accuracy(table: Table, indices: Iterable[int]) -> float | None:
    known = [table[index]["right"] for index in indices if table[index]["right"] is not None]
    return float(np.mean(known)) if known else None


def places_of(grid: tuple[int, ...]) -> dict[str, NDArray[np.bool_]]:
    """Places where objects rarely are, by name: bool ``[rows, cols]`` each; none on a grid of few patches."""
    if min(grid) < 4:
        return {}
    (row, col), (rows, cols) = np.indices(grid), grid
    from_edges = {"top": row, "bottom": rows - 1 - row, "left": col, "right": cols - 1 - col}
    tall, wide = max(1, rows // 6), max(1, cols // 6)
    corners = {
        f"{one} {other} corner": (from_edges[one] < tall) & (from_edges[other] < wide)
        for one in ("top", "bottom")
        for other in ("left", "right")
    }
    edges = sum((distance == 0).astype(int) for distance in from_edges.values())  # 2 in the corners
    places = {f"{name} edge": (distance == 0) & (edges == 1) for name, distance in from_edges.items()}
    return places | corners | {"border": edges > 0}


def split(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which values are high: the two groups of k-means, ``[N]``; none if all are equal."""
    high = values > values.mean()
    if high.all():  # by rounding: the mean of equal numbers may be below them
        return ~high
    for _ in range(50 if high.any() else 0):
        before, high = high, values > (values[high].mean() + values[~high].mean()) / 2
        if (before == high).all():
            break
    return high


def same_grid(maps: Sequence[Floats]) -> NDArray[np.float32]:
    """Maps as one array ``[N, rows, cols]``, without what is no number; resampled to the grid of the first."""
    grid = maps[0].shape
    found = [
        one if one.shape == grid else Image.fromarray(one.astype(np.float32)).resize(grid[::-1], Image.Resampling.BOX)
        for one in maps
    ]
    return np.nan_to_num(np.stack([np.asarray(one, np.float32) for one in found]))


def unusual(table: Table, maps: Sequence[Floats]) -> list[int]:
    """The rank of each picture among those of its class, 1 for the map that is least like the others."""
    shares, classes = shares_of(same_grid(maps)), np.array([class_of(row) for row in table])
    ranks = np.ones(len(table), np.int64)
    for label in set(classes.tolist()):
        own = np.flatnonzero(classes == label)
        points = np.sqrt(shares[own].reshape(len(own), -1))
        distances = np.reshape(cKDTree(evenly(points)).query(points, min(6, len(own)))[0], (len(own), -1)).mean(1)
        ranks[own[np.argsort(-distances, kind="stable")]] = np.arange(1, len(own) + 1)
    return [int(rank) for rank in ranks]
