"""Groups of pictures whose evidence is alike, and which of them rest on something beside the object.

Clusters of maps are proposals. One is suspicious only if its evidence lies where objects rarely do, at a corner, an
edge, the border, or beside the object if that is known; far more than chance would put there, and far more than in the
pictures that it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import cKDTree

from vit_demo.auditing.clusters import evenly, spectral_clusters
from vit_demo.auditing.measures import border_of, shares_of

LEAST_PICTURES = 12
"""Of a class, for groups to be looked for."""
LEAST_GROUP = 8
"""Pictures of a suspicious group; also at least a tenth of its class's."""
LEAST_GAP = 3.0
"""Standard deviations, the group's and the others' together, between the means of their shares at a place."""
LEAST_RATIO = 2.0
"""How many times the share of the evidence at a place must be that of the other pictures."""
LEAST_OF_CHANCE = 0.5
"""And how many times the share of its area."""
BORDER, BESIDE = "border", "surroundings of the object"


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """Pictures of one class whose evidence is alike.

    Attributes:
        label: The class.
        files: Names of the pictures, the most typical first.
        accuracy: The share that is right, of those whose truth is known; None if none is.
        mean_map: Mean share of the evidence in each patch, float32 ``[rows, cols]``.
        why: One sentence: what sets it apart.
        is_suspicious: Whether its evidence lies where objects rarely are, far more than in other pictures.
        indices: Positions of ``files`` in the table.
        suspicion: What groups are ordered by.
    """

    label: str
    files: list[str]
    accuracy: float | None
    mean_map: NDArray[np.float32]
    why: str
    is_suspicious: bool
    indices: NDArray[np.int64]
    suspicion: float


@dataclass(frozen=True, eq=False)
class _Finding:
    """At a place is far more evidence of some pictures, ``inside``, than of others."""

    place: str
    gap: float
    lift: float
    inside: NDArray[np.int64]
    outside: NDArray[np.int64]
    means: tuple[float, float]


def groups_of(
    table: Sequence[dict[str, Any]],
    maps: Sequence[NDArray[np.floating]],
    tokens: Sequence[NDArray[np.floating]],
    seed: int = 0,
) -> list[Group]:
    """The groups of every class with enough pictures, the most suspicious first; see ``Audit``."""
    shares = same_grid(maps)
    classes = np.array([class_of(row) if one.any() else "" for row, one in zip(table, shares, strict=True)])
    places = {name: (shares[:, place].sum(1), place.mean()) for name, place in places_of(shares.shape[1:]).items()}
    if any(row["on_object"] is not None for row in table):
        on, area = (np.array([row[name] for row in table], float) for name in ("on_object", "object_area"))
        places[BESIDE] = (1 - on, 1 - float(np.nanmean(area)))
    found, has_tokens = list[Group](), bool(len(tokens) and tokens[0].size)
    for label in sorted(set(classes.tolist()) - {""}):
        own, others = np.flatnonzero(classes == label), np.flatnonzero((classes != label) & (classes != ""))
        if len(own) < LEAST_PICTURES:
            continue
        if (finding := _most_suspicious(places, own, others)) is not None:
            found.append(_group(table, shares, label, finding.inside, finding.outside, finding))
        views = {"lies": np.sqrt(shares[own].reshape(len(own), -1))}
        if has_tokens:
            views["shows"] = np.stack([tokens[int(index)] for index in own]).astype(np.float64)
        for verb, points in views.items():
            clusters = spectral_clusters(points, seed)
            for number in np.unique(clusters) if clusters.any() else ():
                found.append(_group(table, shares, label, own[clusters == number], own[clusters != number], verb))
    return sorted(found, key=lambda group: -group.suspicion)


def _most_suspicious(
    places: dict[str, tuple[NDArray[np.floating], float]], own: NDArray[np.int64], others: NDArray[np.int64]
) -> _Finding | None:
    """Where some of a class's pictures, or all, have far more evidence than others; None if nowhere."""
    found = dict[str, _Finding]()
    for place, (values, area) in places.items():
        of, rest = (part[np.isfinite(values[part])] for part in (own, others))
        if not len(of):
            continue
        high = split(values[of])
        for inside, outside in ((of[high], of[~high]), (of, rest)):
            few = len(outside) < 3 or len(inside) < max(LEAST_GROUP, len(of) / 10)
            if few or (outside is rest and place != BESIDE):  # a class may always be written at an edge
                continue
            mean, other = float(values[inside].mean()), float(values[outside].mean())
            gap = (mean - other) / max(float(values[inside].std() + values[outside].std()), 1e-2)
            if gap >= LEAST_GAP and mean >= max(LEAST_RATIO * other, LEAST_OF_CHANCE * area):
                found.setdefault(place, _Finding(place, gap, mean / area, inside, outside, (mean, other)))
    if BORDER in found and sum(place.endswith("edge") for place in found) > 2:
        return found[BORDER]
    return max(found.values(), key=lambda one: one.lift, default=None)


def _group(
    table: Sequence[dict[str, Any]],
    shares: NDArray[np.floating],
    label: str,
    inside: NDArray[np.int64],
    outside: NDArray[np.int64],
    found: _Finding | str,
) -> Group:
    mean, other = shares[inside].mean(0), shares[outside].mean(0)
    far = float(np.abs(mean - other).sum() / 2)
    accuracy, others = _accuracy(table, inside), _accuracy(table, outside)
    total, is_all = len(inside) + len(outside), class_of(table[outside[0]]) != label
    if isinstance(found, _Finding):
        count = f"all {len(inside)}" if is_all else f"{len(inside)} of {total}"
        there = "in other classes" if is_all else "in the others"
        why = (
            f"Reads the {found.place} in {count} pictures of {label}: "
            f"{percent(found.means[0])} of the evidence is there, {percent(found.means[1])} {there}"
        )
        suspicion = 10 + found.gap
    else:
        about = "lies in other places" if found == "lies" else "shows something else"
        why = f"In {len(inside)} of {total} pictures of {label} the evidence {about} than in the others"
        differs = 0.0 if accuracy is None or others is None else abs(accuracy - others)
        suspicion = (far + differs) * (1 - len(inside) / total)
    if accuracy is not None and others is not None:
        why += f"; {percent(accuracy)} of them are right, and {percent(others)} of the others"
    order = inside[np.argsort(np.abs(shares[inside] - mean).sum((1, 2)), kind="stable")]
    files = [table[index]["file"] for index in order]
    return Group(
        label=label,
        files=files,
        accuracy=accuracy,
        mean_map=mean.astype(np.float32),
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


def _accuracy(table: Sequence[dict[str, Any]], indices: Iterable[int]) -> float | None:
    known = [table[index]["right"] for index in indices if table[index]["right"] is not None]
    return float(np.mean(known)) if known else None


def places_of(grid: tuple[int, ...]) -> dict[str, NDArray[np.bool_]]:
    """Where objects rarely are, by what it is called: bool ``[rows, cols]`` each; nowhere on a grid of few patches."""
    rows, cols = grid
    if min(grid) < 4:
        return {}
    places = {name: np.zeros((rows, cols), bool) for name in ("top edge", "bottom edge", "left edge", "right edge")}
    places["top edge"][0, 1:-1] = places["bottom edge"][-1, 1:-1] = True
    places["left edge"][1:-1, 0] = places["right edge"][1:-1, -1] = True
    tall, wide = max(1, rows // 6), max(1, cols // 6)
    for vertical, row in (("top", 0), ("bottom", rows - tall)):
        for horizontal, col in (("left", 0), ("right", cols - wide)):
            corner = places[f"{vertical} {horizontal} corner"] = np.zeros((rows, cols), bool)
            corner[row : row + tall, col : col + wide] = True
    return places | {BORDER: border_of((rows, cols))}


def split(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which values are high: the two groups of k-means, ``[N]``; none if all are equal."""
    high = values > values.mean()
    for _ in range(50):
        if high.all() or not high.any():
            break
        before, high = high, values > (values[high].mean() + values[~high].mean()) / 2
        if (before == high).all():
            break
    return high


def same_grid(maps: Sequence[NDArray[np.floating]]) -> NDArray[np.float32]:
    """The shares of the evidence in each patch, ``[N, rows, cols]``; maps are resampled to the grid of the first."""
    grid = maps[0].shape
    found = [
        one if one.shape == grid else Image.fromarray(one.astype(np.float32)).resize(grid[::-1], Image.Resampling.BOX)
        for one in maps
    ]
    return shares_of(np.stack([np.asarray(one, np.float32) for one in found])).astype(np.float32)


def unusual(table: Sequence[dict[str, Any]], maps: Sequence[NDArray[np.floating]]) -> list[int]:
    """The rank of each picture among those of its class, 1 for the map that is least like the others."""
    shares, classes = same_grid(maps), np.array([class_of(row) for row in table])
    ranks = np.ones(len(table), np.int64)
    for label in set(classes.tolist()):
        own = np.flatnonzero(classes == label)
        points = np.sqrt(shares[own].reshape(len(own), -1))
        distances = np.reshape(cKDTree(evenly(points)).query(points, min(6, len(own)))[0], (len(own), -1)).mean(1)
        ranks[own[np.argsort(-distances, kind="stable")]] = np.arange(1, len(own) + 1)
    return [int(rank) for rank in ranks]
