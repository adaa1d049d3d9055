"""Names of a package that are imported on first use, so that what does not need torch does not wait for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package (PEP 562), which imports the module that ``homes`` gives for a name."""

    def get(name: str) -> Any:
        if name in homes:
            module = import_module(homes[name])
            value = getattr(module, name, module)
            setattr(sys.modules[package], name, value)  # so that the next access does not come here
            return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
