"""The project's documents as HTML, among them the sections of ``docs/explanations.md`` about each method."""

from __future__ import annotations

import csv
import re
from functools import cache
from html import escape
from importlib.util import find_spec
from statistics import fmean
from typing import TYPE_CHECKING, Any

from vit_demo.defaults import HOST, PORT
from vit_demo.errors import InputError
from vit_demo.methods import METHODS, find_method
from vit_demo.resources import resource_folder
from vit_demo.web.catalog.lesson_pictures import picture_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

DOCS = resource_folder("docs")

NOTATION = "Notation"

FEATURES = "features"  # the page's name for the section about tokens, which belongs to no method
BOARD, LESSONS = "faithfulness", "lessons"  # the addresses of ``board_html`` and ``lessons_html``, relative to the page

LANGUAGES = {"en": "English", "es": "Español", "zh": "中文", "de": "Deutsch", "fr": "Français"}
"""The languages of the lessons by their codes, as in the page's menu."""

_LOCAL_PAGE = f"http://{HOST}:{PORT}/"  # the page in the documents' links, which work in a copy of them, too

_NEW_TAB = ' target="_blank" rel="noopener"'

BOARD_LINK = "How faithful it is, measured beside the others"


def read_document(name: str) -> str:
    """Reads a document in Markdown; ``InputError`` if this installation has no documents."""
    if not (DOCS / name).exists():
        raise InputError(f"The documentation is not part of this installation: see docs/{name} of the project.")
    return (DOCS / name).read_text(encoding="utf-8")


@cache
def sections() -> dict[str, str]:
    """The text under each heading of ``docs/explanations.md``, and their common notation."""
    top, *parts = re.split(r"^## ", read_document("explanations.md"), flags=re.MULTILINE)
    notation = next(text for text in top.split("\n\n") if "Notation: " in text)
    texts = {heading: text.strip() for heading, text in (part.split("\n", 1) for part in parts)}
    return {**texts, NOTATION: notation.split("Notation: ")[1]}


def board_html() -> str:
    """The faithfulness benchmark as HTML; the anchors of its rows, such as names of methods, become their ids."""
    html = to_html(read_document("faithfulness.md"))
    return re.sub(r"<tr>(\s*<td>)&lt;a id=&quot;([\w-]+)&quot;&gt;&lt;/a&gt;", r'<tr id="\2">\1', html)


@cache
def board_ranks() -> dict[str, dict[str, int]]:
    """The rank of each registered method in the benchmark, from 1: by network, and over all of them for an empty name.

    Methods are ordered by insertion minus deletion, averaged over what removed patches are replaced by. Without the
    document there are none.
    """
    try:
        table = read_document("faithfulness.csv")
    except InputError:
        return {}
    gains: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(table.splitlines()):
        if row["method"] in METHODS:
            for network in (row["network"], ""):
                gain = float(row["insertion"]) - float(row["deletion"])
                gains.setdefault(network, {}).setdefault(row["method"], []).append(gain)
    return {
        network: {name: i + 1 for i, name in enumerate(sorted(found, key=lambda name: -fmean(found[name])))}
        for network, found in gains.items()
    }


def lessons_html(language: str = "en") -> str:
    """The lessons as HTML, with links that open the page of this server in the same tab, and each answer folded."""
    page = "./" if language == "en" else f"./?language={language}"
    html = to_html(_lessons_document(language)).replace(_LOCAL_PAGE, page).replace(_NEW_TAB, "")
    links = "\n".join(
        f'<a lang="{code}" href="./{LESSONS}?language={code}"{" aria-current=page" * (code == language)}>{title}</a>'
        for code, title in LANGUAGES.items()
    )
    # The column's heading folds all answers.
    html = re.sub(r"<th>([^<]+)</th>(?=\s*</tr>)", r"<th><details><summary>\1</summary></details></th>", html)
    answer = "".join(re.findall("<summary>.*</summary>", html))
    folded = rf"<td><details>{answer}\1</details></td>"
    html = re.sub(r'(<a href="[^"#]*(#lesson[^"]*)">)([^<]*)', _with_picture, html)
    return f"<nav>{links}</nav>\n" + re.sub(r"<td>((?:(?!<td>).)*)</td>(?=\s*</tr>)", folded, html)


def _with_picture(link: re.Match[str]) -> str:
    return f"{link[1]}{picture_of(link[2])}<span>{link[3]}</span>"


def lesson(number: int, language: str = "en") -> dict[str, str | int | None]:
    """A lesson, by its number from 1, for the band that its link opens above the page; ``InputError`` if there is none.

    Returns:
        ``number``, ``count`` of all lessons, ``minutes``, ``task`` and ``answer`` as plain text, ``link``, the fragment
        of the page's address that opens the lesson, and ``next``, that of the lesson after it, None for the last.
    """
    rows = _lesson_rows(language)
    if not 1 <= number <= len(rows):
        raise InputError(f"There is no lesson {number}: choose one from 1 to {len(rows)}.")
    minutes, task, link, answer = rows[number - 1]
    return {
        "number": number,
        "count": len(rows),
        "minutes": int(minutes),
        "task": task,
        "answer": answer,
        "link": link,
        "next": rows[number][2] if number < len(rows) else None,
    }


@cache
def _lesson_rows(language: str) -> list[tuple[str, ...]]:
    """The minutes, task, fragment of the address and answer of each lesson, in their order."""
    row = rf"^\| \d+ \| (\d+) [^|]+ \| ([^|]+) \| \[[^]]+\]\({_LOCAL_PAGE}(#[^)]+)\) \| ([^|]+) \|$"
    return re.findall(row, _lessons_document(language), re.MULTILINE)


def _lessons_document(language: str) -> str:
    return read_document("lessons.md" if language == "en" else f"lessons.{language}.md")


def method_html(method: str, board: str = "") -> str:
    """The section about a method, or about ``FEATURES``, as HTML; ``InputError`` if there is none.

    The text after the first formula and the notation are in a ``details`` element. ``board`` is the address of
    ``board_html``, to link to the method's row there; empty for no link.
    """
    heading, description = "Features", ""
    if method != FEATURES:
        chosen = find_method(method)
        heading, description = chosen.docs, chosen.description
    plain, formula, rest = parts(sections().get(heading, description))
    details = to_html(f"{rest}\n\n*{NOTATION}*: {sections()[NOTATION]}".strip())
    link = ""
    if board and method != FEATURES:
        row = f"#{method}" if f'id="{method}"' in board_html() else ""
        link = f'<p><a href="{board}{row}" target="_blank">{BOARD_LINK}</a></p>'
    # The details for developers are in English in every language.
    return (
        f"{to_html(plain + formula)}<details><summary>Source and details</summary>\n"
        f'<div lang="en" translate="no">{details}</div></details>{link}'
    )


def parts(text: str) -> tuple[str, str, str]:
    """The text before the first formula, which is a block of code, the formula, and the text after it."""
    match = re.match(r"(.*?)(^```.*?^```$)(.*)", text, re.MULTILINE | re.DOTALL)
    return match.groups() if match else (text, "", "")  # type: ignore[return-value]


def to_html(text: str) -> str:
    """Markdown as HTML; links to documents and pictures that the page does not serve become their text."""
    if find_spec("markdown_it") is None:  # which only the app installs
        return f"<pre>{escape(text)}</pre>"
    return _markdown().render(re.sub(r"!?\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text))


@cache
def _markdown() -> MarkdownIt:
    """CommonMark with tables and without raw HTML; links open in a new tab, so that the page keeps its result."""
    from markdown_it import MarkdownIt  # not needed to open the page

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def link_open(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        tokens[index].attrSet("target", "_blank")
        tokens[index].attrSet("rel", "noopener")
        return self.renderToken(tokens, index, options, env)

    markdown.add_render_rule("link_open", link_open)
    return markdown
