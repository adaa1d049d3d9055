"""The report of an audit: a folder of static pages, which opens from a disk."""

from __future__ import annotations

import shlex
from collections import Counter
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from vit_demo import render
from vit_demo.auditing.groups import LEAST_PICTURES, class_of, percent
from vit_demo.images import read_image
from vit_demo.methods import find_method
from vit_demo.scores import as_text
from vit_demo.web.notebook.static import Figure, Section, figure, static_page, write_page

if TYPE_CHECKING:
    from vit_demo.auditing.run import Audit

MOST_OF_CLASS = 200
"""Pictures on a page of a class, wrong ones first; the others are in the table."""
MOST_GROUPS, TYPICAL = 12, 8
"""Groups that are not suspicious, and pictures of a group, on the first page."""
SIDE = 136
"""Of the pictures in rows, in CSS pixels."""
BLANK = Image.new("L", (SIDE, SIDE))
FOOTER = "Over each picture: {} for its class. Its colours end at its largest value."
PAGE = "http://127.0.0.1:7860/#tab={}&model={}&patch_size={}"
ORDERS: dict[str, Any] = {
    "wrong first": lambda row: (row["right"] is not False, row["unusual"]),
    "most unusual first": lambda row: row["unusual"],
    "most evidence at the border first": lambda row: -(row["on_border"] or 0),
    "least evidence on the object first": lambda row: 2 if row["on_object"] is None else row["on_object"],
}


def write_report(audit: Audit, folder: Path) -> Path:
    """Writes the pages; returns the path of the first."""
    table, method = audit.table, find_method(audit.method)
    footer, shown = FOOTER.format(method.title), lru_cache(4096)(partial(_small, audit))
    classes: dict[str, list[int]] = {}
    for index, row in enumerate(table):
        classes.setdefault(class_of(row), []).append(index)
    names = {label: f"classes/{number}" for number, label in enumerate(sorted(classes))}
    orders = [name for name in ORDERS if "object" not in name or any(row["on_object"] is not None for row in table)]
    written = set[int]()
    for label, own in classes.items():
        own = sorted(own, key=lambda index: ORDERS["wrong first"](table[index]))[:MOST_OF_CLASS]
        for number, name in enumerate(orders):
            links = [("All classes", "../index.html")]
            links += [(order, f"../{names[label]}-{at}.html") for at, order in enumerate(orders) if order != name]
            ordered = sorted(own, key=lambda index: ORDERS[name](table[index]))
            figures = [shown(index, "../") for index in ordered]
            section = Section(name[0].upper() + name[1:], links=links, groups=[("", figures)])
            write_page(folder / f"{names[label]}-{number}.html", static_page(label, [section], footer=footer))
        written.update(own)
    wrong = [index for index, row in enumerate(table) if row["right"] is False]
    links = []
    for label in sorted(classes, key=lambda label: -sum(table[index]["right"] is False for index in classes[label])):
        missed = sum(table[index]["right"] is False for index in classes[label])
        links.append(
            (f"{label}: {missed} of {len(classes[label])} wrong" if missed else label, f"{names[label]}-0.html")
        )
    sections = [_summary(audit, links)]
    few = [group for group in audit.groups if not group.is_suspicious][:MOST_GROUPS]
    for group in [group for group in audit.groups if group.is_suspicious] + few:
        means = {"Mean of the maps": group.mean_map, "Less that of the others": group.difference}
        figures = [figure(_overlay(audit, BLANK, mean), title, side=SIDE) for title, mean in means.items()]
        typical = group.indices[:TYPICAL].tolist()
        written.update(typical)
        kind = "Suspicious" if group.is_suspicious else "A group"
        sections.append(
            Section(
                f"{kind}: {group.label}",
                [group.why],
                groups=[("", [*figures, *(shown(index, "") for index in typical)])],
            )
        )
    if wrong:
        sure = sorted(wrong, key=lambda index: -table[index]["probability"])[: 2 * TYPICAL]
        written.update(sure)
        sections.insert(
            1 + sum(group.is_suspicious for group in audit.groups),
            Section("Wrong, the surest first", groups=[("", [shown(index, "") for index in sure])]),
        )
    if audit.problems:
        lines = [f"{name}: {problem}" for name, problem in audit.problems[:MOST_OF_CLASS]]
        sections.append(Section(f"Could not be used: {len(audit.problems)}", lines, failed=True))
    for index in written:
        write_page(folder / _page(index), _of_picture(audit, index, footer))
    title = f"{audit.preset.title}: {len(table)} pictures audited"
    return write_page(folder / "index.html", static_page(title, sections, footer=footer, contents=True))


def _summary(audit: Audit, links: list[tuple[str, str]]) -> Section:
    table = audit.table
    known = [row for row in table if row["right"] is not None]
    wrong = [row for row in known if not row["right"]]
    suspicious = sum(group.is_suspicious for group in audit.groups)
    lines = [
        "No group of pictures rests on a corner, an edge, the border or the surroundings of the object, as far as maps "
        "can tell."
        if not suspicious
        else f"{suspicious} of {len(audit.groups)} groups rest on something beside the object; they come first."
    ]
    if known:
        sure = sum(row["probability"] >= 0.9 for row in wrong)
        lines.append(
            f"{len(known) - len(wrong)} of {len(known)} pictures are right, {percent(1 - len(wrong) / len(known))}."
        )
        if audit.preset.scores != "none":
            lines.append(f"Of the {len(wrong)} wrong ones, {sure} have a probability of at least 90 %.")
    pictures = Counter(map(class_of, table))
    enough = sum(count >= LEAST_PICTURES for count in pictures.values())
    lines.append(f"{enough} of {len(pictures)} classes have the {LEAST_PICTURES} pictures that groups need.")
    for name, place in (("on_border", "in the outermost patches"), ("on_object", "on the object")):
        shares = [row[name] for row in table if row[name] is not None]
        if shares:
            lines.append(f"{percent(float(np.mean(shares)))} of the evidence lies {place}.")
    peaks = [row["peak_on_object"] for row in table if row["peak_on_object"] is not None]
    if peaks:
        lines.append(f"The strongest patch is on the object in {sum(peaks)} of {len(peaks)} pictures.")
    return Section("Summary", lines, links=links)


def _page(index: int) -> str:
    return f"pictures/{index}.html"


def _seen(audit: Audit, index: int) -> Image.Image:
    """What the network saw of a picture."""
    image = audit.images[index]
    if isinstance(image, bytes):
        return read_image(image, trusted=True)
    return audit.explainer.prepare(image, None).given.image


def _overlay(audit: Audit, picture: Image.Image, values: Any) -> Image.Image:
    return render.overlay(picture, values.astype(np.float32), **find_method(audit.method).style(values.size))


def _small(audit: Audit, index: int, up: str) -> Figure:
    """A picture under its map, with a link to its page."""
    row, scores = audit.table[index], audit.preset.scores
    lines = [f"{row['prediction']} {as_text(row['probability'], scores)}"]
    if row["right"] is False:
        lines.append(f"is {row['truth']}")
    picture = _overlay(audit, _seen(audit, index), audit.maps[index])
    return figure(picture, Path(row["file"]).name, lines, href=up + _page(index), side=SIDE)


def _of_picture(audit: Audit, index: int, footer: str) -> str:
    """The page of a picture: its answer, its figures, and its maps."""
    row, image, preset, method = audit.table[index], audit.images[index], audit.preset, find_method(audit.method)
    picture, figures = _seen(audit, index), list[Figure]()
    figures.append(figure(picture, "What the model saw", alt=row["file"], pixelated=picture.mode == "L"))
    about = f"for {class_of(row)}" if method.class_specific else "does not depend on the class"
    figures.append(figure(_overlay(audit, picture, audit.maps[index]), method.title, [about]))
    if row["right"] is False and method.compares_classes and not isinstance(image, bytes):
        other = audit.explainer(image).heatmap(method.name, row["prediction"], against=row["truth"])
        about = f"for {row['prediction']} rather than {row['truth']}"
        figures.append(figure(_overlay(audit, picture, other), method.title, [about]))
    lines = (
        [] if row["truth"] is None else [f"It is {row['truth']}: the answer is {'right' if row['right'] else 'wrong'}."]
    )
    if row["on_border"] is not None:
        lines.append(f"{row['patches_with_half']} patches hold half of the evidence.")
        lines.append(f"{percent(row['on_border'])} of it lies in the outermost patches.")
        lines.append(f"In its class, {row['unusual'] - 1} maps are less like the others.")
    if row["on_object"] is not None:
        where = "does" if row["peak_on_object"] else "does not"
        lines.append(f"{percent(row['on_object'])} of it lies on the object; the strongest patch {where}.")
    if "insertion_minus_deletion" in row:
        lines.append(f"Insertion minus deletion: {row['insertion_minus_deletion']:.3f} of probability.")
    links = [("All classes", "../index.html")]
    if preset.source in ("bundled", "hub"):
        links.append((f"{preset.title} on the page", PAGE.format(preset.task, preset.name, audit.patch_size)))
        if not isinstance(image, bytes):
            command = f"vit-demo explain {shlex.quote(str(Path(image).resolve()))} --preset {preset.name}"
            lines.append(f"{command} --patch-size {audit.patch_size} --html explained.html")
    bars = [
        (label, as_text(value, preset.scores), None if preset.scores == "none" else value)
        for label, value in audit.tops[index]
    ]
    section = Section("Explanation", lines, bars, groups=[("", figures)], links=links)
    return static_page(row["file"], [section], footer=footer)
