"""The answer to "How is this computed?": the section of ``docs/explanations.md`` about a method, as HTML."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from markdown_it import MarkdownIt

from vit_demo.errors import InputError
from vit_demo.methods import find_method
from vit_demo.resources import resource_folder

DOCS = resource_folder("docs") / "explanations.md"

NOTATION = "Notation"


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
    """The section about a method as HTML, followed by the notation.

    Raises:
        InputError: If there is no such method, or no documentation.
    """
    chosen = find_method(method)
    if not sections():
        raise InputError("The documentation is not part of this installation: see docs/explanations.md of the project.")
    text = sections().get(chosen.docs, chosen.description)
    return _markdown().render(f"{text}\n\n*{NOTATION}*: {sections()[NOTATION]}")


@cache
def _markdown() -> MarkdownIt:
    """CommonMark without raw HTML; links open in a new tab, so that the result on the page is not lost."""
    markdown = MarkdownIt("commonmark", {"html": False})

    def link_open(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        tokens[index].attrSet("target", "_blank")
        tokens[index].attrSet("rel", "noopener")
        return self.renderToken(tokens, index, options, env)

    markdown.add_render_rule("link_open", link_open)
    return markdown
