"""Untrusted JSON, read field by field, each checked for its type and its range."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import limits
from vit_demo.weights.hub.untrusted_text import quote

REQUIRED: Any = object()


class Fields:
    """The fields of one object in a JSON file, in which null counts as missing if it is ``nullable``.

    Every method takes the name of a field, the values it may have, and a default for a missing field. It raises
    ``PresetError`` for any other value.
    """

    def __init__(self, values: dict[str, Any], file: str, *, nullable: bool = False) -> None:
        self.file, self.nullable = file, nullable
        self.values = {k: v for k, v in values.items() if v is not None} if nullable else values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def integer(self, key: str, low: int, high: int, default: Any = REQUIRED) -> int:
        """A whole number."""
        value = self._get(key, default)
        if value is default:
            return value
        return self._check_integer(key, value, low, high)

    def number(self, key: str, low: float, high: float, default: Any = REQUIRED) -> float:
        """A finite number."""
        value = self._get(key, default)
        if value is default:
            return value
        return self._check_number(key, value, low, high)

    def boolean(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            self._fail(key, "true or false", value)
        return value

    def string(self, key: str, default: Any = REQUIRED) -> str:
        """A string, not sanitized."""
        value = self._get(key, default)
        if value is not default and not isinstance(value, str):
            self._fail(key, "text", value)
        return value

    def choice(self, key: str, allowed: Collection[str] | Collection[int], default: Any) -> Any:
        """One of the allowed strings or integers."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in allowed:
            self._fail(key, f"one of {', '.join(map(str, sorted(allowed)))}", value)
        return value

    def nested(self, key: str, *, nullable: bool | None = None) -> Fields:
        """An object inside this one; an empty one if it is missing or null."""
        value = self.values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self._fail(key, "an object", value)
        return Fields(value, self.file, nullable=self.nullable if nullable is None else nullable)

    def channels(self, key: str, low: float, high: float, default: tuple[float, ...]) -> tuple[float, ...]:
        """Three numbers, for red, green and blue."""
        value = self._get(key, default)
        if value is default:
            return default
        if not isinstance(value, list) or len(value) != 3:
            self._fail(key, "a list of three numbers", value)
        return tuple(self._check_number(key, channel, low, high) for channel in value)

    def sizes(self, key: str, count: int, default: Any = REQUIRED) -> tuple[int, ...]:
        """A list of ``count`` integers, or one integer that stands for all of them."""
        value = self._get(key, default)
        if value is default:
            return value
        if not isinstance(value, list):
            return (self._check_integer(key, value, 1, limits.MAX_IMAGE_SIZE),) * count
        if len(value) != count:
            self._fail(key, f"a list of {count} whole numbers", value)
        return tuple(self._check_integer(key, size, 1, limits.MAX_IMAGE_SIZE) for size in value)

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if it is missing or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self._fail(key, "a list of texts", value)
        return tuple(value)

    def numbered_strings(self, key: str) -> tuple[str, ...]:
        """The strings of an object with the keys "0", "1", ...; empty if it is missing or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value.values()):
            self._fail(key, "an object of texts", value)
        if value.keys() != {str(i) for i in range(len(value))}:
            raise PresetError(f"the {key} in its {self.file} must number its classes from 0, without gaps.")
        return tuple(value[str(i)] for i in range(len(value)))

    def _get(self, key: str, default: Any) -> Any:
        if key not in self.values and default is REQUIRED:
            raise PresetError(f"its {self.file} has no {key}.")
        return self.values.get(key, default)

    def _check_integer(self, key: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self._fail(key, f"a whole number from {low:,} to {high:,}", value)
        return value

    def _check_number(self, key: str, value: Any, low: float, high: float) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or not math.isfinite(value):
            self._fail(key, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def _fail(self, key: str, wanted: str, value: Any) -> NoReturn:
        raise PresetError(f"the {key} in its {self.file} must be {wanted}, not {quote(value)}.")


def read_json_object(path: Path, model: str) -> dict[str, Any]:
    """The object in a JSON file of a model; ``CheckpointError`` if it is missing, too large, or something else."""
    try:
        with path.open("rb") as file:
            content = file.read(limits.MAX_JSON_BYTES + 1)
    except OSError as error:
        raise CheckpointError(
            f"{model} has no {path.name}, so its architecture is unknown: choose another model."
        ) from error
    if len(content) > limits.MAX_JSON_BYTES:
        raise CheckpointError(f"{path.name} of {model} has more than {limits.MAX_JSON_BYTES / 1e6:.1f} MB: shorten it.")
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} of {model} is not JSON in UTF-8: download or save it again.") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path.name} of {model} does not hold a JSON object: download or save it again.")
    return found
