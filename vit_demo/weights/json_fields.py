"""JSON that somebody else wrote, read field by field, each with its type and its range."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import limits
from vit_demo.weights.text import quoted

REQUIRED: Any = object()


class Fields:
    """One object of a JSON file.

    Every method takes the name of a field, what it may hold, and a default for where it is missing, and raises
    ``PresetError`` where it holds anything else.

    Args:
        values: The object.
        file: Its file, for the sentence of an error.
        nullable: Whether null means that a field is missing.
    """

    def __init__(self, values: dict[str, Any], file: str, *, nullable: bool = False) -> None:
        self.file, self.nullable = file, nullable
        self.values = {k: v for k, v in values.items() if v is not None} if nullable else values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def whole(self, key: str, low: int, high: int, default: Any = REQUIRED) -> int:
        """A whole number."""
        value = self._get(key, default)
        if value is default:
            return value
        return self._whole(key, value, low, high)

    def number(self, key: str, low: float, high: float, default: Any = REQUIRED) -> float:
        """A finite number."""
        value = self._get(key, default)
        if value is default:
            return value
        return self._number(key, value, low, high)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            self._refuse(key, "true or false", value)
        return value

    def text(self, key: str, default: Any = REQUIRED) -> str:
        """Text; not cleaned."""
        value = self._get(key, default)
        if value is not default and not isinstance(value, str):
            self._refuse(key, "text", value)
        return value

    def choice(self, key: str, allowed: Collection[str] | Collection[int], default: Any) -> Any:
        """One of a few texts or numbers."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in allowed:
            self._refuse(key, f"one of {', '.join(map(str, sorted(allowed)))}", value)
        return value

    def section(self, key: str, *, nullable: bool | None = None) -> Fields:
        """An object inside this one; an empty one where it is missing or null."""
        value = self.values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self._refuse(key, "an object", value)
        return Fields(value, self.file, nullable=self.nullable if nullable is None else nullable)

    def channels(self, key: str, low: float, high: float, default: tuple[float, ...]) -> tuple[float, ...]:
        """Three numbers, one for each of red, green and blue."""
        value = self._get(key, default)
        if value is default:
            return default
        if not isinstance(value, list) or len(value) != 3:
            self._refuse(key, "a list of three numbers", value)
        return tuple(self._number(key, channel, low, high) for channel in value)

    def sizes(self, key: str, count: int, default: Any = REQUIRED) -> tuple[int, ...]:
        """A list of so many whole numbers, or one number, which stands for all of them."""
        value = self._get(key, default)
        if value is default:
            return value
        if not isinstance(value, list):
            return (self._whole(key, value, 1, limits.MAX_IMAGE_SIZE),) * count
        if len(value) != count:
            self._refuse(key, f"a list of {count} whole numbers", value)
        return tuple(self._whole(key, size, 1, limits.MAX_IMAGE_SIZE) for size in value)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts; none where it is missing or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self._refuse(key, "a list of texts", value)
        return tuple(value)

    def numbered_names(self, key: str) -> tuple[str, ...]:
        """The texts of an object whose keys are "0", "1", ...; none where it is missing or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value.values()):
            self._refuse(key, "an object of texts", value)
        if value.keys() != {str(i) for i in range(len(value))}:
            raise PresetError(f"the {key} in its {self.file} must number its classes from 0 on, without gaps.")
        return tuple(value[str(i)] for i in range(len(value)))

    def _get(self, key: str, default: Any) -> Any:
        if key not in self.values and default is REQUIRED:
            raise PresetError(f"its {self.file} has no {key}.")
        return self.values.get(key, default)

    def _whole(self, key: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self._refuse(key, f"a whole number from {low:,} to {high:,}", value)
        return value

    def _number(self, key: str, value: Any, low: float, high: float) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or not math.isfinite(value):
            self._refuse(key, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def _refuse(self, key: str, wanted: str, value: Any) -> NoReturn:
        raise PresetError(f"the {key} in its {self.file} must be {wanted}, not {quoted(value)}.")


def read_object(path: Path, whose: str) -> dict[str, Any]:
    """A JSON file that holds one object.

    Args:
        path: The file.
        whose: The model it belongs to, for the sentence of an error.

    Raises:
        CheckpointError: If it is missing, too large, not JSON in UTF-8, or holds something else.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limits.MAX_JSON_BYTES + 1)
    except OSError as error:
        raise CheckpointError(f"{whose} has no {path.name}, so what its weights are is not known.") from error
    if len(content) > limits.MAX_JSON_BYTES:
        raise CheckpointError(f"{path.name} of {whose} has more than {limits.MAX_JSON_BYTES / 1e6:.1f} MB: shorten it.")
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} of {whose} is not JSON in UTF-8: fetch or write it again.") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path.name} of {whose} does not hold an object: fetch or write it again.")
    return found
