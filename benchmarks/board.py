"""The faithfulness benchmark as a document, a CSV file and a plot of what ``benchmarks.faithfulness`` measured."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

REMOVALS = ("grey", "blur", "dropped")

Record = dict[str, Any]
"""One method on one picture: ``network``, ``image``, ``method``, ``seconds`` of the processor, ``areas``: removal ->
(deletion, insertion). Or of one method: ``network``, ``method``, ``megabytes``."""

HEAD = """# Faithfulness benchmark

Each method ranks the patches of a picture. They are then removed in that order (deletion), or returned to a picture
without any (insertion): painted grey, blurred, or dropped from the sequence. The table shows insertion minus deletion
of the class's probability, higher is better, with its 95 % interval over {count} images of each network;
[`faithfulness.csv`](faithfulness.csv) has both areas. [Explanations](explanations.md) describes the methods.

**A star marks a result that is not significantly better than a random order**: the 95 % interval of the paired
difference from the random order, image by image, is not entirely above 0. `edges` is a control that ignores the
network and ranks patches by the strength of their edges. An empty cell was not measured.

![Insertion minus deletion of every method](images/faithfulness.svg)

{overview}

Seconds of processor time (median) and the peak of memory over that of a plain pass are those of the ViT-Ti/16 in
bfloat16 on one thread. Made by `python -m benchmarks faithfulness --data PATH --count 20 --memory --docs docs`; an
interrupted run can be resumed by the same command.
"""


def document(records: list[Record], networks: Sequence[str]) -> str:
    """The page about it, in Markdown."""
    counts = {len(images) for network in networks for images in by_method(records, network).values()}
    return HEAD.format(
        overview=overview(records, networks), count=" to ".join(map(str, sorted({min(counts), max(counts)})))
    )


def table(records: list[Record], networks: Sequence[str]) -> str:
    """Mean deletion and insertion areas as CSV, the best method of each network first."""
    file = StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(("network", "method", "removal", "deletion", "insertion", "images"))
    for network in networks:
        for method, images in by_method(records, network).items():
            for removal, areas in zip(REMOVALS, np.mean(list(images.values()), axis=0), strict=True):
                rows.writerow((network, method, removal, *(f"{area:.3f}" for area in areas), len(images)))
    return file.getvalue()


def by_method(records: list[Record], network: str) -> dict[str, dict[int, np.ndarray]]:
    """Deletion and insertion ``[removals, 2]`` of each image by each method, the best method first."""
    found: dict[str, dict[int, np.ndarray]] = {}
    for one in records:
        if one["network"] == network and "areas" in one:
            areas = np.array([one["areas"][removal] for removal in REMOVALS])
            found.setdefault(one["method"], {})[one["image"]] = areas
    return dict(sorted(found.items(), key=lambda item: -gains(item[1].values())[0].mean()))


def gains(values: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mean over images of insertion minus deletion for each removal, and half of its 95 % interval."""
    difference = np.stack([areas[:, 1] - areas[:, 0] for areas in values])  # [images, removals]
    spread = difference.std(0, ddof=min(1, len(difference) - 1))
    return difference.mean(0), 1.96 * spread / len(difference) ** 0.5


def cells(found: dict[str, dict[int, np.ndarray]], method: str) -> list[str]:
    """The difference for each removal with its interval, and a star where it is no better than chance's."""
    if method not in found:
        return [""] * len(REMOVALS)
    common = found[method].keys() & found["random"].keys()
    above, uncertain = gains(found[method][image] - found["random"][image] for image in common)
    stars = [" *" if one <= half else "" for one, half in zip(above, uncertain, strict=True)]
    return [
        f"{mean:.3f} ± {half:.3f}{star}" for mean, half, star in zip(*gains(found[method].values()), stars, strict=True)
    ]


def overview(records: list[Record], networks: Sequence[str]) -> str:
    """Every method on every network as Markdown, by the mean of all differences; the page links to its rows."""
    found = {network: by_method(records, network) for network in networks}
    methods = dict.fromkeys(method for some in found.values() for method in some)

    def mean(method: str) -> float:
        return float(np.mean([gains(some[method].values())[0] for some in found.values() if method in some]))

    def costs(method: str, cost: str) -> list[float]:
        return [
            one[cost] for one in records if (one["network"], one["method"]) == (networks[0], method) and cost in one
        ]

    names = " | ".join(f"{network}: {removal}" for network in networks for removal in REMOVALS)
    rows = [f"| method | {names} | seconds | MB |", "|---" * (3 + len(networks) * len(REMOVALS)) + "|"]
    for method in sorted(methods, key=mean, reverse=True):
        differences = " | ".join(cell for some in found.values() for cell in cells(some, method))
        seconds, memory = costs(method, "seconds"), costs(method, "megabytes")
        costly = f"{np.median(seconds):.2f}" if seconds else "", f"{memory[-1]:.0f}" if memory else ""
        anchor = re.sub(r"\W+", "-", method.lower()).strip("-")
        rows.append(f'| <a id="{anchor}"></a>{method} | {differences} | {" | ".join(costly)} |')
    return "\n".join(rows)


def plot(records: list[Record], networks: Sequence[str], path: Path) -> None:
    """Insertion minus deletion of every method, one panel a network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    panels = figure.subplots(1, len(networks), sharex=True, squeeze=False)[0]
    for panel, network in zip(panels, networks, strict=True):
        found = list(reversed(by_method(records, network).items()))
        means, halves = zip(*(gains(images.values()) for _, images in found), strict=True)
        for offset, removal in enumerate(REMOVALS):
            panel.errorbar(
                np.array(means)[:, offset], np.arange(len(found)) + 0.25 * (1 - offset),
                xerr=np.array(halves)[:, offset], fmt="o", markersize=3, label=removal,
            )  # fmt: skip
        panel.set_yticks(range(len(found)), [method for method, _ in found])
        panel.set_title(network)
        panel.axvline(0, color="grey", linewidth=0.5)
        panel.set_xlabel("insertion − deletion")
    panels[-1].legend(loc="upper left")
    figure.savefig(path)
