"""How little is enough, on the page: one set of patches at a time, so that each can be drawn as it is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.web.requests import parse

WANTED = ("enough", "needed")

HALF = 0.5
"""Of its probability, which a class loses without the patches that it needs, if it is not the predicted one."""


@dataclass(frozen=True)
class SetRequest:
    """Which set of patches is wanted.

    Attributes:
        wanted: ``"enough"`` or ``"needed"``.
        label: Index of the class; None for the predicted one.
        without: Indices of patches, row by row, that must not be in a set that is enough.
    """

    wanted: str
    label: int | None = None
    without: tuple[int, ...] = ()

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> SetRequest:
        """Checks the fields of a request; ``InputError`` if one is not valid."""
        wanted = fields.get("wanted")
        if wanted not in WANTED:
            raise InputError('There is no such set: choose "enough" or "needed".')
        label = parse.optional_integer(fields, "label")
        return cls(wanted, label, parse.patch_indices(fields.get("without", [])))


def smallest_set(result: Exploration, request: SetRequest) -> dict[str, Any]:
    """``{"patches", "probability", "prediction", "is_minimal", "passes"}``, or only ``{"patches": None}`` for none.

    Patches are indices, row by row; see ``metrics.PatchSet``.
    """
    columns = result.grid[1]
    if request.wanted == "enough":
        found = result.enough(request.label, without=[divmod(patch, columns) for patch in request.without])
    else:
        share = None if result.target(request.label) == result.target() else HALF
        found = result.needed(request.label, share)
    if found is None:
        return {"patches": None}
    return {
        "patches": [row * columns + col for row, col in found.patches],
        "probability": found.probability,
        "prediction": result.labels[found.prediction],
        "is_minimal": found.is_minimal,
        "passes": found.passes,
    }
