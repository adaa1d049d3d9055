"""How each map is computed, in the words of ``docs/explanations.md``, so that they are written once."""

from __future__ import annotations

import html
import re
from functools import cache

from vit_demo.errors import InputError
from vit_demo.methods import find_method
from vit_demo.resources import resource_folder

DOCS = resource_folder("docs") / "explanations.md"

HEADINGS = {
    "attention": "Attention",
    "rollout": "Rollout",
    "value_weighted": "Value-weighted attention",
    "relevance": "Relevance",
    "attnlrp": "AttnLRP",
    "occlusion": "Occlusion",
    "patch_dropping": "Patch dropping",
}
"""The section about each method."""

NOTATION = "What the letters mean"

_MARKS = {
    r"\*\*([^*]+)\*\*": r"<b>\1</b>",
    r"\*([^*]+)\*": r"<i>\1</i>",
    r"\[([^\]]+)\]\((https://[^)\s]+)\)": r'<a href="\2" target="_blank" rel="noopener">\1</a>',
}


@cache
def sections() -> dict[str, str]:
    """The text under each heading, and the notation that all share; none where there are no docs."""
    if not DOCS.exists():
        return {}
    top, *parts = re.split(r"^## ", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {heading: text.strip() for heading, text in (part.split("\n", 1) for part in parts)}
    notation = next(text for text in top.split("\n\n") if "Notation: " in text)
    return {**found, NOTATION: notation.split("Notation: ")[1]}


def method_html(method: str) -> str:
    """The section about a method as HTML, and what its letters mean.

    Raises:
        InputError: If there is no such method, or no documentation.
    """
    find_method(method)
    text = sections().get(HEADINGS[method])
    if text is None:
        raise InputError("The documentation is not part of this installation: see docs/explanations.md of the project.")
    paragraphs = [*text.split("\n\n"), f"*{NOTATION}*: {sections()[NOTATION]}"]
    return "".join(f"<p>{_inline(paragraph)}</p>" for paragraph in paragraphs)


def _inline(text: str) -> str:
    """Markdown inside a paragraph; code is set aside first, as stars mean something else there."""
    codes: list[str] = []

    def aside(found: re.Match[str]) -> str:
        codes.append(found[0])
        return f"\0{len(codes) - 1}\0"

    text = re.sub(r"`[^`]+`", aside, html.escape(text, quote=False))
    for mark, tag in _MARKS.items():
        text = re.sub(mark, tag, text)
    return re.sub(r"\0(\d+)\0", lambda found: f"<code>{codes[int(found[1])][1:-1]}</code>", text)
