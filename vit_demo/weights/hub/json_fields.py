"""Untrusted JSON, read field by field, each checked for its type and its range."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import limits
from vit_demo.weights.untrusted_text import quote

REQUIRED: Any = object()


class ValueKind(NamedTuple):
    """What a field may hold: in words, and as a check of its value."""

    wanted: str
    accepts: Callable[[Any], bool]


BOOLEAN = ValueKind("true or false", lambda value: isinstance(value, bool))
TEXT = ValueKind("text", lambda value: isinstance(value, str))
TEXTS = ValueKind("a list of texts", lambda value: isinstance(value, list) and all(map(TEXT.accepts, value)))
OBJECT = ValueKind("an object", lambda value: isinstance(value, dict))


def whole(low: int, high: int) -> ValueKind:
    """A whole number."""
    return ValueKind(
        f"a whole number from {low:,} to {high:,}", lambda value: type(value) is int and low <= value <= high
    )


def number(low: float, high: float) -> ValueKind:
    """A number, which is finite as its bounds are."""
    wanted = f"a number from {low:g} to {high:g}"
    return ValueKind(wanted, lambda value: type(value) in (int, float) and low <= value <= high)


def choice(*allowed: str | int) -> ValueKind:
    """One of some texts or whole numbers."""
    wanted = f"one of {', '.join(map(str, allowed))}"
    return ValueKind(wanted, lambda value: type(value) in (str, int) and value in allowed)


def list_of(kind: ValueKind, count: int) -> ValueKind:
    """A list of so many values of a kind."""
    wanted = f"a list of {count}, each {kind.wanted}"
    return ValueKind(
        wanted, lambda value: isinstance(value, list) and len(value) == count and all(map(kind.accepts, value))
    )


def one_or_object_of(kind: ValueKind) -> ValueKind:
    """A value of a kind, or an object of such."""
    return ValueKind(
        f"{kind.wanted}, or an object of such numbers",
        lambda value: kind.accepts(value) or (isinstance(value, dict) and all(map(kind.accepts, value.values()))),
    )


class Fields:
    """The fields of one object in a JSON file, in which null counts as missing if it is ``nullable``."""

    def __init__(self, values: dict[str, Any], file: str, *, nullable: bool = False) -> None:
        self.file, self.nullable = file, nullable
        self.values = {k: v for k, v in values.items() if v is not None} if nullable else values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str, kind: ValueKind, default: Any = REQUIRED) -> Any:
        """The value of a field, or its default if it is missing; ``PresetError`` without one, or of another kind."""
        if key in self.values and not kind.accepts(self.values[key]):
            raise PresetError(f"the {key} in its {self.file} must be {kind.wanted}, not {quote(self.values[key])}.")
        if key not in self.values and default is REQUIRED:
            raise PresetError(f"its {self.file} has no {key}.")
        return self.values.get(key, default)

    def nested(self, key: str, *, nullable: bool | None = None) -> Fields:
        """An object inside this one; an empty one if it is missing or null."""
        found = {} if self.values.get(key) is None else self.get(key, OBJECT)
        return Fields(found, self.file, nullable=self.nullable if nullable is None else nullable)

    def sizes(self, key: str, count: int, default: Any = REQUIRED) -> tuple[int, ...]:
        """A list of ``count`` sizes in pixels, or one that stands for all of them."""
        size = whole(1, limits.MAX_IMAGE_SIZE)
        value = self.get(key, list_of(size, count) if isinstance(self.values.get(key), list) else size, default)
        return (value,) * count if isinstance(value, int) else value and tuple(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if it is missing or null."""
        return () if self.values.get(key) is None else tuple(self.get(key, TEXTS))

    def numbered_texts(self, key: str) -> tuple[str, ...]:
        """The texts or whole numbers of an object with the keys "0", "1", ..., or from "1"; empty if it is missing."""
        found = self.nested(key).values
        first = 0 if "0" in found else 1
        names = [found.get(str(index)) for index in range(first, first + len(found))]
        if not all(type(name) in (str, int) for name in names):
            raise PresetError(f"the {key} in its {self.file} must name its classes, numbered from 0 without gaps.")
        return tuple(map(str, names))


def read_json_object(path: Path, model: str, max_bytes: int = limits.MAX_JSON_BYTES) -> dict[str, Any]:
    """The object in a JSON file of a model; ``CheckpointError`` if it is missing, too large, or something else."""
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise CheckpointError(
            "{0} has no {1}, so its architecture is unknown: choose another model.", model, path.name
        ) from error
    if len(content) > max_bytes:
        raise CheckpointError(
            "{0} of {1} has more than {2} MB: shorten it.", path.name, model, f"{max_bytes / 1e6:.1f}"
        )
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            "{0} of {1} is not JSON in UTF-8: download or save it again.", path.name, model
        ) from error
    if not isinstance(found, dict):
        raise CheckpointError("{0} of {1} does not hold a JSON object: download or save it again.", path.name, model)
    return found
