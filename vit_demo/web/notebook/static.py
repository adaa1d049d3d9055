"""Static pages: sections of pictures with captions, without scripts, that load nothing from anywhere."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Template
from PIL import Image

from vit_demo.checks import writing
from vit_demo.version import __version__
from vit_demo.web.frontend.constants import COLOURS

HERE = Path(__file__).parent

SIDE = 224  # longest side of a picture, in CSS pixels; its file has up to twice as many


@dataclass(frozen=True)
class Figure:
    """A picture with its caption; ``figure`` makes one.

    Attributes:
        url: The picture as a data URL.
        width: In CSS pixels, as ``height``.
        alt: A text for those who do not see it.
        title: The first line of the caption.
        lines: The others.
        href: The address of the page that it opens; empty for none.
        pixelated: Whether its pixels stay squares when it is enlarged.
    """

    url: str
    width: int
    height: int
    alt: str
    title: str
    lines: Sequence[str] = ()
    href: str = ""
    pixelated: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a page; all texts are plain.

    Attributes:
        title: Its heading.
        lines: Paragraphs below it.
        scores: Texts with a value as text, and its share of the longest bar, 0 to 1; None for no bar.
        details: A line, and what it hides until it is clicked.
        groups: Figures below a heading, which may be empty.
        links: Texts with the address of another page.
        failed: Whether the lines say what went wrong.
    """

    title: str
    lines: Sequence[str] = ()
    scores: Sequence[tuple[str, str, float | None]] = ()
    details: tuple[str, str] | None = None
    groups: Sequence[tuple[str, Sequence[Figure]]] = ()
    failed: bool = False
    links: Sequence[tuple[str, str]] = ()


def figure(
    picture: Image.Image,
    title: str,
    lines: Sequence[str] = (),
    *,
    alt: str = "",
    href: str = "",
    pixelated: bool = False,
    side: int = SIDE,
) -> Figure:
    """A picture for a page, which holds a small copy of it; see ``Figure``."""
    scale = side / max(picture.size)
    small, buffer = picture.copy(), io.BytesIO()
    small.thumbnail((2 * side, 2 * side))
    small.save(buffer, "WEBP", quality=80, method=2)  # a third of the time for 5 % more bytes
    url = "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    width, height = (max(1, round(edge * scale)) for edge in picture.size)
    return Figure(url, width, height, alt or title, title, lines, href, pixelated)


def static_page(
    title: str, sections: Sequence[Section], intro: str = "", footer: str = "", *, contents: bool = False
) -> str:
    """One HTML file: sections below a title, an ``intro`` and perhaps the ``contents``, and above a ``footer``."""
    template, style = _template_and_style()
    shown = sections if contents else ()
    return template.render(
        title=title, style=style, intro=intro, sections=sections, contents=shown, footer=footer, version=__version__
    )


@cache
def _template_and_style() -> tuple[Template, str]:
    """Read and compiled once, which takes longer than to fill in a page."""
    template = Template((HERE / "static.html").read_text("utf-8"), autoescape=True, trim_blocks=True)
    return template, colours() + (HERE / "static.css").read_text("utf-8")


def colours() -> str:
    """The colours of the page as CSS variables."""
    pairs = (f"--{name.replace('_', '-')}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items())
    return f":root {{ {' '.join(pairs)} }}\n"


def write_page(path: str | os.PathLike[str], page: str) -> Path:
    """Writes a page and makes its folder; ``InputError`` if that is not possible."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page.encode(errors="backslashreplace"))  # a file's name may hold bytes that are no text
    return path
