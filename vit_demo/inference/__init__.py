"""One image through one model: the engine shared by Python, command line, API and page, and its result."""

from collections.abc import Callable
from typing import Any

notebook_html: Callable[[Any], str] | None = None
result_page: Callable[[Any], str] | None = None
"""From a result to HTML for notebooks, and to a page of its own; the package sets both, because imports go one way and
pages are a layer above."""
