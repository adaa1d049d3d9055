"""Names of a package that are imported on first use, so that what does not need torch does not wait for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package (PEP 562).

    Args:
        package: Its ``__name__``.
        homes: The module that defines each lazy name.

    Returns:
        A function that imports a name's module and returns the name.
    """

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            setattr(sys.modules[package], name, value)  # so that the next access does not come here
            return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
