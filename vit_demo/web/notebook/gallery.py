"""A site of results that needs no server: an index of pictures, and a page with the stage for each result."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

import numpy as np

from vit_demo.checks import printable
from vit_demo.defaults import CLASSLESS_METHOD, DEFAULT_METHOD
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.scores import as_text
from vit_demo.web.notebook import document
from vit_demo.web.notebook.static import SIDE, Figure, Section, figure, static_page, write_page

MAX_PAGE_BYTES = 300_000  # largest size of a result's page, as for ``MAX_BYTES`` of a notebook

INDEX = "index.html"
PAGES = "results"  # the folder of the results' pages, below that of the index

INTRO = (
    "What Vision Transformers with patches of different sizes see: over each picture is {}. Choose one to look inside: "
    "every patch, block and head."
)
EVIDENCE, ROLLOUT = "the evidence for the predicted class (Libra FullGrad+)", "attention through all blocks (rollout)"


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


class ResultPages:
    """Writes pages with the stage into a folder, one for each result, below the page ``index.html`` that links them."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """The folder is made when the first page is written."""
        self.folder = Path(folder)
        self._hrefs: set[str] = set()

    def add(self, name: str, results: Sequence[Exploration]) -> list[str]:
        """Writes a page for each result of a picture; returns their addresses, relative to the folder."""
        name = printable(name)
        hrefs = [self._href(name, result) for result in results]
        for href, result in zip(hrefs, results, strict=True):
            page = document(result, _links(name, result, results, hrefs), MAX_PAGE_BYTES)
            title = f"{Path(name).name}, {result.preset.name}, patches of {result.patch_size} px"
            write_page(self.folder / href, page.replace("<title>vit_demo<", f"<title>{escape(title)}<", 1))
        return hrefs

    def _href(self, name: str, result: Exploration) -> str:
        """The address of a result's page, relative to the folder, and unlike those before."""
        stem = re.sub(r"[^\w.-]+", "-", f"{Path(name).stem}-{result.preset.name}-{result.patch_size}").strip("-.")
        href, number = f"{PAGES}/{stem[-100:]}.html", 2
        while href.casefold() in self._hrefs:  # some file systems do not tell capitals from small letters
            href, number = f"{PAGES}/{stem[-100:]}-{number}.html", number + 1
        self._hrefs.add(href.casefold())
        return href


class Gallery:
    """Writes such a site a picture at a time, so that no more than one picture's results are in memory."""

    def __init__(self, folder: str | os.PathLike[str], title: str) -> None:
        self._pages, self._title = ResultPages(folder), title
        self._sections: list[Section] = []
        self._maps: dict[str, None] = {}

    def add(self, name: str, results: Sequence[Exploration]) -> None:
        """Writes a page for each result of a picture."""
        entries = list(zip(results, self._pages.add(name, results), strict=True))
        short, groups = Path(printable(name)).name, list[tuple[str, list[Figure]]]()
        for title, group in groupby(entries, lambda entry: entry[0].preset.title):
            groups.append((title, [_entry(short, *entry) for entry in group]))
        if groups:
            first = results[0]  # a drawing without a map is ink on paper, as its maps are drawn
            picture = first.photo or first.overlay(np.zeros(first.grid), size=2 * SIDE)
            groups[0][1].insert(0, figure(picture, "The picture", alt=short))
            self._sections.append(Section(short, groups=groups))
            self._maps |= dict.fromkeys(EVIDENCE if result.labels else ROLLOUT for result in results)

    def write_index(self) -> Path:
        """Writes the index of the pictures so far, and returns its path; ``InputError`` if there is none."""
        if not self._sections:
            raise InputError("A gallery needs at least one result: none of the pictures has one.")
        page = static_page(self._title, self._sections, INTRO.format(" or ".join(self._maps)))
        return write_page(self._pages.folder / INDEX, page)


def _links(name: str, shown: Exploration, results: Sequence[Exploration], hrefs: Sequence[str]) -> str:
    """What stands above the stage: the way back, and the same picture by the other models and patch sizes."""
    links, model = [f'<a href="../{INDEX}">‹ All pictures</a>', f"<b>{escape(Path(name).name)}</b>"], ""
    for result, href in zip(results, hrefs, strict=True):
        if result.preset.name != model:
            links.append(f"<span>{escape(model := result.preset.name)}</span>")
        here = ' aria-current="page"' if result is shown else ""
        links.append(f'<a href="{escape(Path(href).name)}"{here}>{result.patch_size} px</a>')
    return f'<nav aria-label="Gallery">{"".join(links)}</nav>'


def _entry(name: str, result: Exploration, href: str) -> Figure:
    """What the index shows of a result."""
    method = DEFAULT_METHOD if result.labels else CLASSLESS_METHOD
    answer = [f"{label} {as_text(score, result.preset.scores)}" for label, score in result.top(1)]
    return figure(
        result.overlay(result.heatmap(method), method=method, size=2 * SIDE),
        (*answer, "No classes")[0],
        [f"{result.patch_size} px, {result.grid[0]} x {result.grid[1]} patches"],
        alt=f"{name} by {result.preset.name}, patches of {result.patch_size} pixels",
        href=href,
    )
