"""Bundles the stage's JavaScript and CSS, so that they can be used where there is no server to fetch them from."""

from __future__ import annotations

import re
from functools import cache

from vit_demo.web.frontend.assets import read_styles
from vit_demo.web.frontend.javascript import FOLDER, bundle, sources

START = "stage/main.js"
VIEWS = "stage/views/"

_OFFLINE = re.compile(r"^export const offline = true;$", re.MULTILINE)


@cache
def views() -> tuple[str, ...]:
    """The views that work without a server: those whose module exports ``offline = true``."""
    return tuple(_name(path) for path, source in sources().items() if _is_view(path) and _OFFLINE.search(source))


@cache
def script() -> str:
    """One module with the stage, these views and all that they need."""
    offline = {path: source for path, source in sources().items() if not _is_view(path) or _name(path) in views()}
    return bundle(offline, [START])


@cache
def stylesheet() -> str:
    """The style of the stage and of the views in the bundle."""
    first = FOLDER / "stage" / "stage.css"
    others = sorted(path for path in first.parent.glob("*.css") if path != first)
    of_views = [path for name in views() if (path := first.parent / "views" / name / "view.css").is_file()]
    shared = [FOLDER / "shared" / name for name in ("palette.css", "widgets.css")]
    return read_styles(*(str(path.relative_to(FOLDER)) for path in (*shared, first, *others, *of_views)))


def _is_view(path: str) -> bool:
    return path.startswith(VIEWS)


def _name(path: str) -> str:
    return path.removeprefix(VIEWS).partition("/")[0]
