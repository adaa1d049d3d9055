"""The HTML report of ``explain``: one file, without scripts, that loads nothing from anywhere."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from vit_demo.version import __version__

if TYPE_CHECKING:
    from PIL import Image

    from vit_demo.cli.pictures import Explained

PICTURE_SIDE = 224
"""Longest side of a picture in the report, in CSS pixels; the files have up to twice as many."""

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>vit_demo: {title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1></header>
{contents}<main>
{sections}</main>
<footer>{footer}</footer>
</body>
</html>
"""

FOOTER = (
    "The colours of a map end at its largest absolute value, given below it; values below 0 are blue. "
    "Made with vit_demo {}."
)


class Report:
    """Collects pictures as HTML; a result can be dropped from memory once it is added."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._sections: list[str] = []

    def add(self, explained: Explained) -> None:
        """Adds a picture with its predictions and maps."""
        result = explained.result
        rows = "\n".join(_prediction(label, probability) for label, probability in result.top(5))
        preset, size = result.preset, result.patch_size
        predictions = f"<p>{escape(preset.title)} ({escape(preset.name)}), patches of {size} x {size} pixels</p>\n"
        predictions += f"<ol>\n{rows}\n</ol>" if rows else "<p>This model has no classes.</p>"
        if rows and not result.is_confident:
            predictions += "<p>Low confidence.</p>"
        if preset.few_labels:
            labels = escape(", ".join(preset.few_labels))
            summary = f"The model knows {len(preset.few_labels)} classes and takes anything else for one of them."
            predictions += f"\n<details><summary>{summary}</summary>{labels}</details>"
        input_caption = f"<b>What the model saw</b><br>{result.grid[0]} x {result.grid[1]} patches"
        figures = [_figure(result.image, input_caption, explained.picture.name, pixelated=result.photo is None)]
        for one in explained.maps:
            method = one.method
            about = f"for {explained.label}" if method.class_specific else "does not depend on the class"
            if one.against:
                about += f" rather than {one.against}"
            lines = [about, f"largest value {float(abs(one.values).max()):.3g} ({method.unit})"]
            if one.options:
                lines.insert(0, ", ".join(f"{name} {value}" for name, value in one.options.items()))
            caption = f"<b>{escape(method.title)}</b><br>{'<br>'.join(map(escape, lines))}"
            figures.append(
                _figure(
                    result.overlay(one.values, method=method.name),
                    caption,
                    f"{method.title} of {explained.picture.name}",
                )
            )
        self._add(explained.picture.name, f'{predictions}\n<div class="maps">\n{"".join(figures)}</div>')

    def add_failure(self, name: str, message: str) -> None:
        """Adds a picture that could not be read, and why."""
        self._add(name, f'<p class="failure">{escape(message)}</p>')

    def html(self) -> str:
        """The whole file."""
        links = "".join(f'<li><a href="#p{i}">{escape(name)}</a></li>\n' for i, name in enumerate(self._names))
        count = len(self._names)
        return PAGE.format(
            title="1 picture explained" if count == 1 else f"{count} pictures explained",
            style=Path(__file__).with_name("report.css").read_text(encoding="utf-8"),
            contents=f"<nav><ol>\n{links}</ol></nav>\n" if count > 1 else "",
            sections="".join(self._sections),
            footer=escape(FOOTER.format(__version__)),
        )

    def _add(self, name: str, content: str) -> None:
        heading = f'<section id="p{len(self._names)}">\n<h2>{escape(name)}</h2>\n'
        self._names.append(name)
        self._sections.append(f"{heading}{content}\n</section>\n")


def _prediction(label: str, probability: float) -> str:
    bar = f'<i style="width: {100 * probability:.1f}%"></i>'
    return f"<li><span>{escape(label)}</span><b>{100 * probability:.1f} %</b>{bar}</li>"


def _figure(picture: Image.Image, caption: str, alternative: str, *, pixelated: bool = False) -> str:
    """A picture with a caption, which is HTML already, and a text for those who do not see it."""
    scale = PICTURE_SIDE / max(picture.size)
    size = f'width="{round(picture.width * scale)}" height="{round(picture.height * scale)}"'
    style = ' class="pixelated"' if pixelated else ""
    image = f'<img src="{_data_url(picture)}" {size} alt="{escape(alternative)}"{style}>'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>\n"


def _data_url(picture: Image.Image) -> str:
    small = picture.copy()
    small.thumbnail((2 * PICTURE_SIDE, 2 * PICTURE_SIDE))
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=90)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
