"""Lists the words of the page that a language lacks: ``python -m scripts.translations fr``.

Prints JSON with one entry for each English text without a translation: the file of a new language, or what an older one
still needs. ``page_words`` collects the texts from the code, for this command and for the tests:

- JavaScript: the first argument of each ``translate("...")`` and ``english("...")``, and in ``texts.js`` each string;
- HTML, in files and in ``html = `...` `` of JavaScript: text and attributes, outside of ``translate="no"``;
- Python: what the registries hold, and the sentences of the modules below, with ``{0}``, ``{1}`` and so on for values.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import count
from pathlib import Path

from vit_demo.methods import METHODS
from vit_demo.sentences import FIRST, LAST, marked
from vit_demo.web import page
from vit_demo.web.catalog import method_docs
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.catalog.menu import starting_points
from vit_demo.web.frontend import html_head
from vit_demo.weights import PRESETS
from vit_demo.weights.hub.connection import FALLBACK
from vit_demo.weights.kept_networks import GONE_TAUGHT

PACKAGE = Path(page.__file__).parent.parent
FRONTEND = PACKAGE / "web" / "frontend"
LANGUAGES = PACKAGE / "web" / "languages"

ATTRIBUTES = ("aria-label", "title", "placeholder", "alt")
VOID = ("img", "input", "br", "meta", "link")

SENTENCES = (
    "images/decoder.py",
    "images/digit_preprocess.py",
    "images/reading.py",
    "images/rgb.py",
    "inference/contributions.py",
    "inference/forward.py",
    "service/job.py",
    "service/jobs.py",
    "inference/patch_features.py",
    "inference/steps.py",
    "weights/hub/connection.py",
    "weights/hub/download.py",
    "weights/hub/json_fields.py",
    "weights/hub/network.py",
    "weights/hub/preprocessing.py",
    "weights/hub/repository.py",
    "weights/hub/visitor_cache.py",
    "weights/taught_heads.py",
    "words/texts.py",
    "words/tokenizer.py",
    "web/catalog/visitor_presets.py",
    "web/api/registration.py",
    "web/requests/packing.py",
    "web/requests/poll.py",
    "web/catalog/menu.py",
    "web/requests/notes.py",
    "web/requests/payload.py",
    "web/requests/teaching.py",
    "web/requests/tokens.py",
    "web/guard/uploads.py",
)
"""Modules whose sentences a visitor can meet. What only a forged request can cause stays English."""

LEFT_IN_ENGLISH = (
    "The template must hold",
    "contains NaN or infinity",
    "The request is not an object",
    "has no source",
    "Its config has no mean",
    "no name that a file could hold",
    "is not a file that",
    "There is no home folder",
    "is gated: ask for access",
    "does not accept your token",
    "HF_HUB_OFFLINE",
    "is not trusted here",
    "The proxy of this machine",
    "What answers is not the Hub",
    "This call was given up.",
    "{0} cannot be downloaded. {1}",
)
"""Parts of sentences of these modules that only Python's users, forged requests and unusual checkpoints meet; those
of f-strings have no key."""

MORE_SENTENCES = (
    GONE_TAUGHT,
    "Two examples of {0} are the same: give different ones.",
    "Write at most {0} words, with commas between them.",
    "{0} is not on the Hub, or not public: check its name.",
    f"{{0}} cannot be downloaded, because this machine is set to work offline: go online, or {FALLBACK}.",
    f"{{0}} cannot be downloaded, because the Hub is busy: try again in a few minutes, or {FALLBACK}.",
    f"{{0}} cannot be downloaded, because the Hub does not respond: go online, or {FALLBACK}.",
)
"""What the sentences that are put together become for a visitor."""

UNTRANSLATED = {"org/name", "Apache-2.0", "AttnLRP"}
"""The same in every language."""

_CALL = re.compile(r"""\b(?:translate|english)\(\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""")
_STRING = re.compile(r"""(?<!\w)("(?:[^"\\\n]|\\.)*")(?!:)""")
_TEMPLATE = re.compile(r"\b(?:html|HTML) = `([^`]*)`")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9“])")
_WORD = re.compile(r"[^\W\d_A-Z]{2}|^%")


class _Words(HTMLParser):
    """The texts of some HTML, as ``header/main.js`` finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._skipping = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        is_skipped = self._skipping or values.get("translate") == "no"
        if not is_skipped:
            self.found.update(plain(values[name] or "") for name in ATTRIBUTES if name in values)
        if is_skipped or tag in ("code", "pre", "textarea"):
            self._skipping += tag not in VOID

    def handle_endtag(self, tag: str) -> None:
        self._skipping -= bool(self._skipping) and tag not in VOID

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.found.add(plain(data))


def plain(text: str) -> str:
    """A text with single spaces, as browsers show it."""
    return re.sub(r"[ \t\n]+", " ", text).strip()


def page_words() -> set[str]:
    """All English texts that the page translates."""
    found = {*_of_javascript(), *_of_html(), *_of_registries(), *MORE_SENTENCES}
    for name in SENTENCES:
        found.update(_sentences(PACKAGE / name))
    return {text for text in found - UNTRANSLATED if _WORD.search(re.sub(r"\{\w+\}\s*", "", text))}


def _of_javascript() -> Iterator[str]:
    for path in FRONTEND.rglob("*.js"):
        pattern = _STRING if path.name == "texts.js" else _CALL
        for literal in pattern.findall(re.sub(r"^import .*|//.*", "", path.read_text(encoding="utf-8"), flags=re.M)):
            yield ast.literal_eval(literal)


def _of_html() -> set[str]:
    words = _Words()
    words.feed(page.HEADER.format(device="") + page.FOOTER.format(source=page.SOURCE_LINK, version=""))
    for path in FRONTEND.rglob("*.html"):
        words.feed(path.read_text(encoding="utf-8"))
    for path in FRONTEND.rglob("*.js"):
        for html in _TEMPLATE.findall(path.read_text(encoding="utf-8")):
            words.feed(html)
    return words.found


def _of_registries() -> Iterator[str]:
    yield html_head.TITLE
    yield from ("Source and details", method_docs.BOARD_LINK)
    for method in METHODS.values():
        yield from (method.title, method.description, method.unit, method.use, method.recommended, method.floor.reason)
    for heading in ("Features", *(method.docs for method in METHODS.values())):
        yield plain(method_docs.parts(method_docs.sections()[heading])[0])
    for preset in PRESETS.values():
        yield _key(preset.title)
        yield from map(_key, _SENTENCE_END.split(marked(preset.note)))
    yield from PRESETS["photos-tiny"].labels
    for photo in EXAMPLE_PHOTOS.values():
        yield from (photo.title, photo.licence)
    networks = starting_points()["networks"]
    yield from (network["group"] for network in networks)
    yield networks[0]["title"]  # the others have names


def _sentences(path: Path) -> Iterator[str]:
    """The sentences of a module, with numbered placeholders; docstrings are none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and node not in skipped else ""
        is_sentence = isinstance(text, str) and re.match(r"[A-Z“{]", text) and re.search(r"[ ].*[.]$", text)
        if is_sentence and not any(part in text for part in LEFT_IN_ENGLISH):
            yield text


def _key(text: str) -> str:
    """The key of a sentence, as ``language.js`` finds it: its values are numbered."""
    places = count()
    return re.sub(f"{FIRST}.*?{LAST}", lambda _: f"{{{next(places)}}}", marked(text))


def read_language(name: str) -> dict[str, str | dict[str, str]]:
    """The catalogue of a language; empty if there is none."""
    path = LANGUAGES / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Lists the words of the page that a language lacks, as JSON.")
    parser.add_argument("language", help="its code, such as fr")
    known = read_language(parser.parse_args().language)
    print(json.dumps(dict.fromkeys(sorted(page_words() - set(known)), ""), ensure_ascii=False, indent=1))
