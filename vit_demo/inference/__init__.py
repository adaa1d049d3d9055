"""One image through one model: the engine shared by Python, command line, API and page, and its result."""

from collections.abc import Callable
from typing import Any

notebook_html: Callable[[Any], str] | None = None
"""From a result to HTML for notebooks; the package sets it, because imports go one way and pages are a layer above."""
