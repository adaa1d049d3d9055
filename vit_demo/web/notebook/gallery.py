"""A site of results that needs no server: an index of pictures, and a page with the stage for each result."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Template
from PIL import Image

from vit_demo.defaults import CLASSLESS_METHOD, DEFAULT_METHOD
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS
from vit_demo.scores import as_text
from vit_demo.version import __version__
from vit_demo.web.notebook import HERE, colours, document

MAX_PAGE_BYTES = 300_000
"""Largest size of a result's page, as for ``MAX_BYTES`` of a notebook."""

INDEX = "index.html"
PAGES = "results"
"""The folder of the results' pages, below that of the index."""

SIDE = 176
"""Longest side of a picture in the index, in CSS pixels; the files have twice as many."""


def gallery(
    explorations: Mapping[str, Exploration | Sequence[Exploration]],
    folder: str | os.PathLike[str],
    title: str = "vit_demo gallery",
) -> Path:
    """Writes a site of results, for a static host or to be opened from a disk; nothing in it makes a request.

    Args:
        explorations: By the name of a picture its result, or those of several models and patch sizes.
        folder: Is made if need be; files of the same names in it are overwritten.
        title: Heading of the index.

    Returns:
        The path of the index.

    Raises:
        InputError: If there is no result, or a file cannot be written.
    """
    site = Gallery(folder, title)
    for name, results in explorations.items():
        site.add(name, [results] if isinstance(results, Exploration) else results)
    return site.write_index()


class Gallery:
    """Writes such a site a picture at a time, so that no more than one picture's results are in memory."""

    def __init__(self, folder: str | os.PathLike[str], title: str) -> None:
        """See ``gallery``."""
        self._folder, self._title = Path(folder), title
        self._pictures: list[dict[str, Any]] = []
        self._hrefs: set[str] = set()

    def add(self, name: str, results: Sequence[Exploration]) -> None:
        """Writes a page for each result of a picture."""
        hrefs = [self._href(name, result) for result in results]
        for href, result in zip(hrefs, results, strict=True):
            page = document(result, _links(name, result, results, hrefs), MAX_PAGE_BYTES)
            self._write(href, page.replace("<title>vit_demo<", f"<title>{escape(_title(name, result))}<", 1))
        entries = [_entry(result, href) for result, href in zip(results, hrefs, strict=True)]
        if results:
            first = results[0]  # a drawing without a map is ink on paper, as its maps are drawn
            shown = _figure(first.photo or first.overlay(np.zeros(first.grid), size=2 * SIDE))
            self._pictures.append({"name": Path(name).name, "results": entries, **shown})

    def write_index(self) -> Path:
        """Writes the index of the pictures so far, and returns its path; ``InputError`` if there is none."""
        if not self._pictures:
            raise InputError("A gallery needs at least one result: none of the pictures has one.")
        template = Template((HERE / "gallery.html").read_text("utf-8"), autoescape=True, trim_blocks=True)
        style = colours() + (HERE / "gallery.css").read_text("utf-8")
        maps = dict.fromkeys(one["map"] for picture in self._pictures for one in picture["results"])
        page = template.render(
            title=self._title,
            style=style,
            maps=" or ".join(maps),
            pictures=self._pictures,
            version=__version__,
        )
        return self._write(INDEX, page)

    def _href(self, name: str, result: Exploration) -> str:
        """The address of a result's page, relative to the index, and unlike those before."""
        stem = re.sub(r"[^\w.-]+", "-", f"{Path(name).stem}-{result.preset.name}-{result.patch_size}").strip("-.")
        href, number = f"{PAGES}/{stem[-100:]}.html", 2
        while href.casefold() in self._hrefs:  # some file systems do not tell capitals from small letters
            href, number = f"{PAGES}/{stem[-100:]}-{number}.html", number + 1
        self._hrefs.add(href.casefold())
        return href

    def _write(self, href: str, page: str) -> Path:
        path = self._folder / href
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(page.encode(errors="backslashreplace"))  # a file's name may hold bytes that are no text
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror}): choose another folder.") from error
        return path


def _title(name: str, result: Exploration) -> str:
    return f"{Path(name).name}, {result.preset.name}, patches of {result.patch_size} px"


def _links(name: str, shown: Exploration, results: Sequence[Exploration], hrefs: Sequence[str]) -> str:
    """What stands above the stage: the way back, and the same picture by the other models and patch sizes."""
    links, model = [f'<a href="../{INDEX}">‹ All pictures</a>', f"<b>{escape(Path(name).name)}</b>"], ""
    for result, href in zip(results, hrefs, strict=True):
        if result.preset.name != model:
            links.append(f"<span>{escape(model := result.preset.name)}</span>")
        here = ' aria-current="page"' if result is shown else ""
        links.append(f'<a href="{escape(Path(href).name)}"{here}>{result.patch_size} px</a>')
    return f'<nav aria-label="Gallery">{"".join(links)}</nav>'


def _entry(result: Exploration, href: str) -> dict[str, Any]:
    """What the index shows of a result."""
    method, about = METHODS[CLASSLESS_METHOD], "attention through all blocks (rollout)"
    if result.labels:
        method, about = METHODS[DEFAULT_METHOD], "the evidence for the predicted class (Libra FullGrad+)"
    answer = [f"{label} {as_text(score, result.preset.scores)}" for label, score in result.top(1)]
    return {
        "href": href,
        "model": result.preset.name,
        "title": result.preset.title,
        "size": result.patch_size,
        "grid": f"{result.grid[0]} x {result.grid[1]}",
        "answer": (*answer, "No classes")[0],
        "map": about,
        **_figure(result.overlay(result.heatmap(method.name), method=method.name, size=2 * SIDE)),
    }


def _figure(picture: Image.Image) -> dict[str, Any]:
    """A picture for an ``img`` of the index."""
    small, buffer = picture.copy(), io.BytesIO()
    small.thumbnail((2 * SIDE, 2 * SIDE))
    small.save(buffer, "WEBP", quality=75)
    return {
        "image": "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"),
        "width": round(SIDE * picture.width / max(picture.size)),
        "height": round(SIDE * picture.height / max(picture.size)),
    }
