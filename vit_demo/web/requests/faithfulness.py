"""Deletion and insertion on the page: the curves of one order of the patches at a time.

The page draws each curve as it arrives, first that of the heatmap, then those of random orders. A random order does not
depend on the heatmap, so its curves serve all heatmaps of the same picture and class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_demo.defaults import BASELINES, NUM_RANDOM_ORDERS, Baseline
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.metrics import random_orders
from vit_demo.web.requests import parse


@dataclass(frozen=True)
class CurveRequest:
    """Which curves of a result are wanted.

    Attributes:
        baseline: What replaces a removed patch; see ``metrics.baseline_image``.
        order: Number of the random order, from 0; not used for a heatmap.
        label: Index of the class; None for the predicted one.
        against: Index of the class that it is compared with; None for none.
    """

    baseline: Baseline
    order: int
    label: int | None
    against: int | None

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> CurveRequest:
        """Checks the fields of a request; ``InputError`` if one is not valid."""
        baseline = fields.get("baseline", "mean")
        if baseline not in BASELINES:
            raise InputError(f"There is no such baseline: choose one of {', '.join(BASELINES)}.")
        order = parse.integer(fields.get("order", 0), "order")
        if order >= NUM_RANDOM_ORDERS:
            raise InputError(f"There is no random order {order}: there are {NUM_RANDOM_ORDERS}, counted from 0.")
        label, against = (parse.optional_integer(fields, name) for name in ("label", "against"))
        return cls(baseline, order, label, against)


def random_map(result: Exploration, order: int) -> NDArray[np.float32]:
    """A map ``[rows, cols]`` whose values fall along a random order of the patches in the sequence."""
    rows, cols = result.grid
    dropped = {row * cols + col for row, col in result.dropped}
    patches = np.array([patch for patch in range(rows * cols) if patch not in dropped])
    values = np.zeros(rows * cols, np.float32)
    values[patches[random_orders(len(patches), order + 1)[order].numpy()]] = np.arange(len(patches), 0, -1)
    return values.reshape(rows, cols)


def curves(result: Exploration, values: NDArray[np.float32], request: CurveRequest) -> dict[str, Any]:
    """``{"fractions", "deletion": {"curve", "area"}, "insertion": {"curve", "area"}}`` of a map."""
    found = result.faithfulness(
        values, label=request.label, baseline=request.baseline, seeds=0, against=request.against
    )
    return {
        "fractions": found.fractions.tolist(),
        "deletion": {"curve": found.deletion.tolist(), "area": found.deletion_area},
        "insertion": {"curve": found.insertion.tolist(), "area": found.insertion_area},
    }
