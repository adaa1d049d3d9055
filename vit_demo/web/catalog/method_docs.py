"""The answer to "How is this computed?": the section of ``docs/explanations.md`` about a method, as HTML.

A section begins with two plain sentences and a formula; the source and the details that follow are folded.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from vit_demo.errors import InputError
from vit_demo.methods import find_method
from vit_demo.resources import resource_folder

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

DOCS = resource_folder("docs") / "explanations.md"

NOTATION = "Notation"

FEATURES = "features"
"""What the page calls the section about tokens, which belongs to no method."""


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
    """The section about a method, or about ``FEATURES``, as HTML.

    All after the first formula is in a ``details`` element, and the notation, too.

    Raises:
        InputError: If there is no such method, or no documentation.
    """
    heading, description = "Features", ""
    if method != FEATURES:
        chosen = find_method(method)
        heading, description = chosen.docs, chosen.description
    if not sections():
        raise InputError("The documentation is not part of this installation: see docs/explanations.md of the project.")
    plain, formula, rest = parts(sections().get(heading, description))
    render = _markdown().render
    details = render(f"{rest}\n\n*{NOTATION}*: {sections()[NOTATION]}".strip())
    # The details for developers are in English in every language.
    return (
        f"{render(plain + formula)}<details><summary>Source and details</summary>\n"
        f'<div lang="en" translate="no">{details}</div></details>'
    )


def parts(text: str) -> tuple[str, str, str]:
    """The text before the first formula, which is a block of code, the formula, and what follows."""
    found = re.match(r"(.*?)(^```.*?^```$)(.*)", text, re.MULTILINE | re.DOTALL)
    return found.groups() if found else (text, "", "")  # type: ignore[return-value]


@cache
def _markdown() -> MarkdownIt:
    """CommonMark without raw HTML; links open in a new tab, so that the result on the page is not lost."""
    from markdown_it import MarkdownIt  # here, because the page opens without it

    markdown = MarkdownIt("commonmark", {"html": False})

    def link_open(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        tokens[index].attrSet("target", "_blank")
        tokens[index].attrSet("rel", "noopener")
        return self.renderToken(tokens, index, options, env)

    markdown.add_render_rule("link_open", link_open)
    return markdown
