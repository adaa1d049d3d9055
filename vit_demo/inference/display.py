"""How a result shows itself in a notebook.

A layer above this one draws the picture. It registers its function here, because imports go one way; see
``vit_demo/__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vit_demo.inference.exploration import Exploration

Renderer = Callable[["Exploration"], str]

_renderer: Renderer | None = None


def register_renderer(renderer: Renderer) -> None:
    """Registers the function from a result to HTML."""
    global _renderer
    _renderer = renderer


def to_html(result: Exploration) -> str | None:
    """HTML for a result, or None while no function is registered."""
    return None if _renderer is None else _renderer(result)
