"""The HTML report of ``explain``: one file, without scripts, that loads nothing from anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from vit_demo.cli.pictures import Explained, ExplainedMap, Picture
from vit_demo.defaults import DEFAULT_METHOD
from vit_demo.scores import as_text
from vit_demo.web.notebook.static import Figure, Section, figure, static_page, write_page

if TYPE_CHECKING:
    from vit_demo.inference.exploration import Exploration

FOOTER = "The colours of a map end at its largest absolute value, given below it; values below 0 are blue."


class Report:
    """Collects what the report shows of pictures; a result can be dropped from memory once it is added."""

    def __init__(self) -> None:
        self._sections: list[Section] = []

    def add(self, explained: Explained) -> None:
        """Adds a picture with its predictions and maps."""
        result, name, preset = explained.result, explained.picture.name, explained.result.preset
        size, scores = result.patch_size, preset.scores
        lines = [f"{preset.title} ({preset.name}), patches of {size} x {size} pixels"]
        if result.intervention.is_silent:
            lines.append(f"Silent: {result.intervention.words}, counted from 0.")
        if not result.labels:
            lines.append("This model has no classes.")
        elif not result.is_confident and scores != "none":
            lines.append("Low confidence.")
        few, knows = preset.few_labels, "The model knows {} classes and takes anything else for one of them."
        seen = [f"{result.grid[0]} x {result.grid[1]} patches"]
        figures = [figure(result.image, "What the model saw", seen, alt=name, pixelated=result.photo is None)]
        figures += [_figure_of(explained, shown) for shown in explained.maps]
        bars = [(label, as_text(score, scores), None if scores == "none" else score) for label, score in result.top()]
        details = (knows.format(len(few)), ", ".join(few)) if few else None
        self._sections.append(Section(name, lines, bars, details, [("", figures)]))

    def add_failure(self, name: str, message: str) -> None:
        """Adds a picture that could not be read, and why."""
        self._sections.append(Section(name, [message], failed=True))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the file; ``InputError`` if that is not possible."""
        count = len(self._sections)
        title = "1 picture explained" if count == 1 else f"{count} pictures explained"
        write_page(path, static_page(title, self._sections, footer=FOOTER, contents=True))


def report(
    explorations: Iterable[Exploration] | Mapping[str, Exploration],
    path: str | os.PathLike[str],
    methods: Sequence[str] = (DEFAULT_METHOD,),
    label: str | int | None = None,
) -> None:
    """Writes one HTML file with the predictions and maps of some results, as ``vit-demo explain --html`` does.

    Args:
        explorations: Results, or results by the name of their picture.
        path: The file, which is overwritten.
        methods: Names of the methods whose maps are shown.
        label: Class of the maps that depend on one; each picture's predicted class for None.

    Raises:
        InputError: If there is no such method, or the file cannot be written.
        LabelError: If there is no such class.
    """
    from vit_demo.methods import find_method

    found, collected = [find_method(name) for name in methods], Report()
    for name, result in _named(explorations):
        maps = [
            ExplainedMap(method, {}, result.heatmap(method.name, label if method.class_specific else None), None)
            for method in found
        ]
        chosen = result.labels[result.target(label)] if result.labels else None
        collected.add(Explained(Picture(name, name), result, maps, chosen))
    collected.write(path)


def _named(explorations: Iterable[Exploration] | Mapping[str, Exploration]) -> Iterator[tuple[str, Exploration]]:
    if isinstance(explorations, Mapping):
        yield from ((str(name), result) for name, result in explorations.items())
    else:
        for number, result in enumerate(explorations, 1):
            yield result.source if isinstance(result.source, str) else f"Picture {number}", result


def _figure_of(explained: Explained, shown: ExplainedMap) -> Figure:
    """A map over its picture, and what it is about."""
    method = shown.method
    about = f"for {explained.label}" if method.class_specific else "does not depend on the class"
    if shown.against:
        about += f" rather than {shown.against}"
    lines = [about, f"largest value {float(abs(shown.values).max()):.3g} ({method.unit})"]
    if shown.options:
        lines.insert(0, ", ".join(f"{name} {value}" for name, value in shown.options.items()))
    if shown.test:
        lines.append(shown.verdict)
    picture = explained.result.overlay(shown.values, method=method.name)
    return figure(picture, method.title, lines, alt=f"{method.title} of {explained.picture.name}")
