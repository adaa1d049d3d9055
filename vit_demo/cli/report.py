"""The HTML report of ``explain``: one file, without scripts, that loads nothing from anywhere."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Template

from vit_demo.cli import output
from vit_demo.cli.pictures import Explained, ExplainedMap, Picture
from vit_demo.defaults import DEFAULT_METHOD
from vit_demo.scores import as_text
from vit_demo.version import __version__

if TYPE_CHECKING:
    from PIL import Image

    from vit_demo.inference.exploration import Exploration

PICTURE_SIDE = 224
"""Longest side of a picture in the report, in CSS pixels; the files have up to twice as many."""


class Report:
    """Collects what ``report.html`` shows of pictures; a result can be dropped from memory once it is added."""

    def __init__(self) -> None:
        self._pictures: list[dict[str, Any]] = []

    def add(self, explained: Explained) -> None:
        """Adds a picture with its predictions and maps."""
        result, name, preset = explained.result, explained.picture.name, explained.result.preset
        seen = _figure(result.image, name, "What the model saw", [f"{result.grid[0]} x {result.grid[1]} patches"])
        figures = [{**seen, "pixelated": result.photo is None}]
        for shown in explained.maps:
            method = shown.method
            about = f"for {explained.label}" if method.class_specific else "does not depend on the class"
            if shown.against:
                about += f" rather than {shown.against}"
            lines = [about, f"largest value {float(abs(shown.values).max()):.3g} ({method.unit})"]
            if shown.options:
                lines.insert(0, ", ".join(f"{name} {value}" for name, value in shown.options.items()))
            if shown.test:
                lines.append(shown.verdict)
            picture = result.overlay(shown.values, method=method.name)
            figures.append(_figure(picture, f"{method.title} of {name}", method.title, lines))
        self._pictures.append(
            {
                "name": name,
                "preset": preset,
                "patch_size": result.patch_size,
                "predictions": [(label, score, as_text(score, preset.scores)) for label, score in result.top(5)],
                "is_confident": result.is_confident,
                "figures": figures,
            }
        )

    def add_failure(self, name: str, message: str) -> None:
        """Adds a picture that could not be read, and why."""
        self._pictures.append({"name": name, "failure": message})

    def html(self) -> str:
        """The whole file."""
        template, style = (Path(__file__).with_name(f"report.{end}").read_text("utf-8") for end in ("html", "css"))
        count = len(self._pictures)
        return Template(template, autoescape=True, trim_blocks=True, lstrip_blocks=True).render(
            title="1 picture explained" if count == 1 else f"{count} pictures explained",
            style=style,
            pictures=self._pictures,
            version=__version__,
        )


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
    output.write_file(Path(path), collected.html().encode(errors="backslashreplace"))


def _named(explorations: Iterable[Exploration] | Mapping[str, Exploration]) -> Iterator[tuple[str, Exploration]]:
    if isinstance(explorations, Mapping):
        yield from ((str(name), result) for name, result in explorations.items())
    else:
        for number, result in enumerate(explorations, 1):
            yield result.source if isinstance(result.source, str) else f"Picture {number}", result


def _figure(picture: Image.Image, alternative: str, title: str, lines: list[str]) -> dict[str, Any]:
    """A picture with a caption, and a text for those who do not see it."""
    scale = PICTURE_SIDE / max(picture.size)
    small, buffer = picture.copy(), io.BytesIO()
    small.thumbnail((2 * PICTURE_SIDE, 2 * PICTURE_SIDE))
    small.save(buffer, "WEBP", quality=90)
    return {
        "url": "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"),
        "width": round(picture.width * scale),
        "height": round(picture.height * scale),
        "alt": alternative,
        "title": title,
        "lines": lines,
    }
