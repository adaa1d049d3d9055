"""Bundles the stage's JavaScript and CSS, so that they can be used where there is no server to fetch them from.

The modules are found by following their imports. Relative addresses mean nothing in a module without an address of its
own, so each becomes a name, ``vit_demo/stage/main.js``, for the browser's import map.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import join, normpath

FOLDER = Path(__file__).parent.parent / "components"
START = "stage/main.js"
PREFIX = "vit_demo/"

_IMPORT = re.compile(r"""(\b(?:from|import)\s*\(?\s*)(["'`])(\.\.?/[^"'`]+)\2""")
_OFFLINE = re.compile(r"^export const offline = true;$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
_CSS_COMMENT = re.compile(r"^\s*/\*(?:.|\n)*?\*/\n", re.MULTILINE)
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)


@cache
def views() -> tuple[str, ...]:
    """The views that work without a server: those whose module exports ``offline = true``."""
    paths = sorted((FOLDER / "stage" / "views").glob("*.js"))
    return tuple(path.stem for path in paths if _OFFLINE.search(path.read_text(encoding="utf-8")))


@cache
def modules() -> dict[str, str]:
    """The source of the stage's first module and of each that it needs, by its name in the import map."""
    found: dict[str, str] = {}
    waiting = [START]
    while waiting:
        path = waiting.pop()
        if PREFIX + path in found:
            continue
        source = (FOLDER / path).read_text(encoding="utf-8")
        imported = [_resolve(path, address) for _, _, address in _IMPORT.findall(source)]
        found[PREFIX + path] = _shorten(_with_names(source, path))
        waiting += [name for address in imported for name in _matches(address)]
    return found


@cache
def stylesheet() -> str:
    """The style of the stage and of the views in the bundle."""
    first = FOLDER / "stage" / "stage.css"
    others = sorted(path for path in first.parent.glob("*.css") if path != first)
    of_views = [path for name in views() if (path := first.parent / "views" / f"{name}.css").is_file()]
    palette = FOLDER / "shared" / "palette.css"
    texts = (path.read_text(encoding="utf-8") for path in (palette, first, *others, *of_views))
    return _INDENTATION.sub("", _CSS_COMMENT.sub("", "\n".join(texts)))


def _resolve(path: str, address: str) -> str:
    """The path of an imported module, from that of the module that imports it and its relative address."""
    return normpath(join(str(PurePosixPath(path).parent), address))


def _with_names(source: str, path: str) -> str:
    def name(match: re.Match[str]) -> str:
        before, quote, address = match.groups()
        return f"{before}{quote}{PREFIX}{_resolve(path, address)}{quote}"

    return _IMPORT.sub(name, source)


def _matches(path: str) -> list[str]:
    """The modules that a path stands for: itself, or, for a computed one of ``stage/views``, all offline views."""
    if "${" not in path:
        return [path]
    pattern = re.sub(r"\$\{[^}]*\}", "*", path)
    return [name for view in views() if fnmatchcase(name := f"stage/views/{view}.js", pattern)]


def _shorten(source: str) -> str:
    """The source without indentation and comments on lines of their own."""
    return _INDENTATION.sub("", _COMMENT.sub("", source))
