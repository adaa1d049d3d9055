"""Options that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

METHODS_FOLDER = Path(__file__).parent.parent / "methods"

FITS = ("crop", "squash", "keep")


class AddToList(argparse.Action):
    """An option that can be repeated, and whose value can be a list with commas; doublets are dropped."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Adds the values to those of earlier uses of the option."""
        before = [] if getattr(namespace, self.dest) is self.default else getattr(namespace, self.dest)
        assert isinstance(values, Sequence)
        setattr(namespace, self.dest, list(dict.fromkeys([*before, *values])))


def names(text: str) -> list[str]:
    """Names between commas."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError("give at least one name")
    return found


def whole_numbers(text: str) -> list[int]:
    """Whole numbers between commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 4,7") from None


def add_picture_options(command: argparse.ArgumentParser) -> None:
    """Adds ``--method``, ``--label`` and ``--fit``."""
    command.add_argument(
        "--method", type=names, action=AddToList, default=["rollout"], metavar="M[,M]",
        help="explanation methods (rollout); each of: " + ", ".join(method_names()),
    )  # fmt: skip
    command.add_argument(
        "--label", metavar="CLASS", help="class to explain, for methods that depend on it (the predicted class)"
    )
    command.add_argument("--fit", choices=FITS, default="crop", help="how a photo becomes the input (%(default)s)")


def method_names() -> list[str]:
    """The registered methods, read from their files, because importing them takes torch and so seconds."""
    sources = (path.read_text(encoding="utf-8") for path in sorted(METHODS_FOLDER.glob("*.py")))
    return [name for source in sources for name in re.findall(r'^@register\(\s*"(\w+)"', source, re.MULTILINE)]
