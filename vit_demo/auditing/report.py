"""What an audit found: a table, groups, and the report of both, a folder of static pages that opens from a disk."""

from __future__ import annotations

import base64
import csv
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo import render
from vit_demo.auditing.groups import LEAST_PICTURES, Group, class_of, percent
from vit_demo.auditing.pictures import Item
from vit_demo.auditing.record import unpacked
from vit_demo.checks import cell, writing
from vit_demo.defaults import HOST, PORT
from vit_demo.images import read_image
from vit_demo.inference.explainer import Explainer
from vit_demo.methods import find_method
from vit_demo.scores import as_text
from vit_demo.web.notebook.static import Figure, Section, figure, static_page, write_page
from vit_demo.weights import Preset

MOST_OF_CLASS = 200  # pictures on a page of a class, wrong ones first; the others are in the table
MOST_GROUPS, TYPICAL = 12, 8  # groups that are not suspicious, and pictures of a group, on the first page
SIDE = 136  # longest side of the pictures in rows, in CSS pixels
BLANK = Image.new("L", (SIDE, SIDE))
FOOTER = "Over each picture: {} for its class. Its colours end at its largest value."
PLACES = "a corner, an edge, the border or, with masks, the surroundings of the object"
BACK = ("All classes", "../index.html")
SMALL = 128  # longest side of the copy of a picture that its link to the page holds, in pixels
PAGE = f"http://{HOST}:{PORT}/" + "#tab={}&model={}&patch_size={}&method={}&class={}&image={}"
ORDERS: dict[str, Any] = {
    "wrong first": lambda row: (row["right"] is not False, row["unusual"]),
    "most unusual first": lambda row: row["unusual"],
    "most evidence at the border first": lambda row: -(row["on_border"] or 0),
    "least evidence on the object first": lambda row: 2 if row["on_object"] is None else row["on_object"],
}


@dataclass(eq=False)
class Audit:
    """What an audit found.

    Attributes:
        explainer: That of the network, of which ``preset`` and ``patch_size`` say what is known.
        method: Name of the method of the maps.
        table: A dict for each picture, such as for ``pandas.DataFrame``, with None for what is not known: ``file``,
            ``truth``, ``prediction``, ``probability``; ``margin``, by which that exceeds the second; ``right``;
            ``on_object``, the share of the evidence on the object, ``peak_on_object``, whether the strongest patch is
            there (pointing game), and ``object_area``, its share of the picture; ``on_border``, the share in the
            outermost patches; ``patches_with_half``, how many hold half of it; ``unusual``, the rank of its map among
            those of its class, from 1 for the one least like the others; ``insertion_minus_deletion`` if tested,
            in probability.
        maps: The map of each, float16 ``[rows, cols]``.
        tokens: The mean token of the patches with half of its evidence, projected, float16 ``[at most 64]``.
        tops: Its up to five pairs of label and probability, highest first.
        images: Its path, or a small copy of what the network saw, as the bytes of a file.
        groups: Pictures of one class whose evidence is alike, the most suspicious first.
        problems: Pairs of a picture and a sentence: it could not be read, or its mask not be used.
    """

    explainer: Explainer
    preset: Preset
    patch_size: int
    method: str
    table: list[dict[str, Any]] = field(default_factory=list)
    maps: list[NDArray[np.float16]] = field(default_factory=list)
    tokens: list[NDArray[np.float16]] = field(default_factory=list)
    tops: list[list[tuple[str, float]]] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    images: list[Any] = field(default_factory=list)

    def add(self, item: Item, entry: dict[str, Any]) -> None:
        """Adds a picture by what the record keeps of it."""
        self.table.append(entry["row"])
        self.maps.append(unpacked(entry["map"]))
        self.tokens.append(unpacked(entry["token"]))
        self.tops.append([(label, value) for label, value in entry["top"]])
        self.images.append(base64.b64decode(entry["image"]) or item.image)
        if entry["problem"]:
            self.problems.append((item.name, entry["problem"]))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the table; ``InputError`` if that is not possible."""
        # With a mark, by which Excel knows that it is UTF-8.
        with writing(path), Path(path).open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(self.table[0]))
            writer.writeheader()
            writer.writerows({name: cell(value) for name, value in row.items()} for row in self.table)

    def to_html(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the report, a folder that opens from a disk, and returns the path of its first page."""
        return write_report(self, Path(folder))


def write_report(audit: Audit, folder: Path) -> Path:
    """Writes the pages; returns the path of the first."""
    pages, table = _Pages(audit, folder), audit.table
    sections = [_summary(audit, _write_classes(pages, table))]
    sections += [pages.of_group(group) for group in audit.groups if group.is_suspicious]
    if wrong := [index for index, row in enumerate(table) if row["right"] is False]:
        surest = sorted(wrong, key=lambda index: -table[index]["probability"])[: 2 * TYPICAL]
        sections.append(Section("Wrong, the surest first", groups=[("", pages.row(surest))]))
    sections += [pages.of_group(group) for group in audit.groups if not group.is_suspicious][:MOST_GROUPS]
    if audit.problems:
        lines = [f"{name}: {problem}" for name, problem in audit.problems[:MOST_OF_CLASS]]
        sections.append(Section(f"Could not be used: {len(audit.problems)}", lines, failed=True))
    return pages.write("index.html", f"{audit.preset.title}: {len(table)} pictures audited", sections, contents=True)


def _write_classes(pages: _Pages, table: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Writes the pages of the classes, one for each order; returns links to the first of each, most mistakes first."""
    classes: dict[str, list[int]] = {}
    for index, row in enumerate(table):
        classes.setdefault(class_of(row), []).append(index)
    has_masks = any(row["on_object"] is not None for row in table)
    orders = [name for name in ORDERS if has_masks or "object" not in name]
    links = list[tuple[int, str, str]]()
    for number, (label, own) in enumerate(sorted(classes.items())):
        few = sorted(own, key=lambda index: ORDERS["wrong first"](table[index]))[:MOST_OF_CLASS]
        names = {name: f"classes/{number}-{at}.html" for at, name in enumerate(orders)}
        for name, page in names.items():
            others = [(other, f"../{names[other]}") for other in orders if other != name]
            shown = pages.row(sorted(few, key=lambda index: ORDERS[name](table[index])), up="../")
            title = name[0].upper() + name[1:]
            pages.write(page, label, [Section(title, links=[BACK, *others], groups=[("", shown)])])
        missed = sum(table[index]["right"] is False for index in own)
        links.append((-missed, f"{label}: {missed} of {len(own)} wrong" if missed else label, names[orders[0]]))
    return [(text, page) for _, text, page in sorted(links, key=lambda link: link[0])]


class _Pages:
    """Writes pages of an audit; each picture that they show gets a page of its own."""

    def __init__(self, audit: Audit, folder: Path) -> None:
        self._audit, self._folder, self._method = audit, folder, find_method(audit.method)
        self._figure = lru_cache(4096)(self._with_page)

    def write(self, name: str, title: str, sections: Sequence[Section], *, contents: bool = False) -> Path:
        """Writes a page, and returns its path."""
        footer = FOOTER.format(self._method.title)
        return write_page(self._folder / name, static_page(title, sections, footer=footer, contents=contents))

    def row(self, indices: Sequence[int], up: str = "") -> list[Figure]:
        """Pictures under their maps, with links to their pages, ``up`` from the page that shows them."""
        return [replace(self._figure(index), href=f"{up}pictures/{index}.html") for index in indices]

    def of_group(self, group: Group) -> Section:
        """What sets a group apart, and its typical pictures."""
        means = {"Mean of the maps": group.mean_map, "Less that of the others": group.difference}
        figures = [figure(self._overlay(BLANK, mean), title, side=SIDE) for title, mean in means.items()]
        figures += self.row(group.indices[:TYPICAL].tolist())
        kind = "Suspicious" if group.is_suspicious else "A group"
        title = f"{kind}: {group.label}, {len(group.files)} pictures"
        return Section(title, [group.why], groups=[("", figures)])

    def _overlay(self, picture: Image.Image, values: Any) -> Image.Image:
        return render.overlay(picture, values.astype(np.float32), **self._method.style(values.size))

    def _with_page(self, index: int) -> Figure:
        """A picture under its map; its page, with the answer, the figures and the maps, is written."""
        audit, method, row, image = self._audit, self._method, self._audit.table[index], self._audit.images[index]
        preset, given = audit.preset, None if isinstance(image, bytes) else audit.explainer.prepare(image, None).given
        picture = given.image if given else read_image(image, trusted=True)
        about = f"for {class_of(row)}" if method.class_specific else "does not depend on the class"
        mapped, answer = self._overlay(picture, audit.maps[index]), as_text(row["probability"], preset.scores)
        figures = [
            figure(picture, "What the model saw", alt=row["file"], pixelated=picture.mode == "L"),
            figure(mapped, method.title, [about]),
        ]
        lines, links, caption = _sentences(row), [BACK], [f"{row['prediction']} {answer}"]
        if row["right"] is False:
            caption.append(f"is {row['truth']}")
            if method.compares_classes and given:
                other = audit.explainer.maps(given.pixels, method.name, row["prediction"], row["truth"])[0].numpy()
                about = f"for {row['prediction']} rather than {row['truth']}"
                figures.append(figure(self._overlay(picture, other), method.title, [about]))
        if preset.is_bundled or preset.is_downloaded:
            small = figure(picture, "", side=SMALL // 2).url.partition(",")[2].replace("+", "%2B")
            values = (preset.task, preset.name, audit.patch_size, method.name, preset.labels.index(class_of(row)))
            links.append((f"This picture under {preset.title} on the page", PAGE.format(*values, small)))
            if given:
                command = f"vit-demo explain {shlex.quote(str(Path(image).resolve()))} --preset {preset.name}"
                lines.append(f"{command} --patch-size {audit.patch_size} --html explained.html")
        bars = [
            (label, as_text(value, preset.scores), None if preset.scores == "none" else value)
            for label, value in audit.tops[index]
        ]
        section = Section("Explanation", lines, bars, groups=[("", figures)], links=links)
        self.write(f"pictures/{index}.html", row["file"], [section])
        return figure(mapped, Path(row["file"]).name, caption, side=SIDE)


def _sentences(row: dict[str, Any]) -> list[str]:
    """The figures of a picture."""
    lines = []
    if row["truth"] is not None:
        lines.append(f"It is {row['truth']}: the answer is {'right' if row['right'] else 'wrong'}.")
    if row["on_border"] is not None:
        lines.append(f"{row['patches_with_half']} patches hold half of the evidence.")
        lines.append(f"{percent(row['on_border'])} of it lies in the outermost patches.")
        lines.append(f"By how unusual its map is, it is number {row['unusual']} of its class.")
    if row["on_object"] is not None:
        where = "does" if row["peak_on_object"] else "does not"
        lines.append(f"{percent(row['on_object'])} of it lies on the object; the strongest patch {where}.")
    if "insertion_minus_deletion" in row:
        lines.append(f"Insertion minus deletion: {row['insertion_minus_deletion']:.3f} of probability.")
    return lines


def _summary(audit: Audit, links: list[tuple[str, str]]) -> Section:
    table = audit.table
    known = [row for row in table if row["right"] is not None]
    wrong = [row for row in known if not row["right"]]
    suspicious = sum(group.is_suspicious for group in audit.groups)
    lines = [f"{suspicious} of {len(audit.groups)} groups rest on something beside the object; they come first."]
    if not suspicious:
        lines = [f"No group of pictures rests on {PLACES}, as far as maps can tell."]
    if known:
        right = len(known) - len(wrong)
        lines.append(f"{right} of {len(known)} pictures are right, {percent(right / len(known))}.")
        if audit.preset.scores != "none":
            sure = sum(row["probability"] >= 0.9 for row in wrong)
            lines.append(f"Wrong with a probability of at least 90 %: {sure} of {len(wrong)}.")
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
