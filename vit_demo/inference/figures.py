"""Maps as pictures; the functions here are also methods of ``Exploration``."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Literal

from vit_demo import render
from vit_demo.checks import require, whole_number
from vit_demo.defaults import DEFAULT_METHOD, OPACITY
from vit_demo.errors import InputError
from vit_demo.inference.heatmaps import heatmap
from vit_demo.inference.inputs import DISPLAY_SIZE
from vit_demo.inference.result import Label, Result
from vit_demo.inference.sequence import as_map, class_index
from vit_demo.methods import find_method

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from PIL import Image


MAX_SIZE = 8192  # longest side of an overlay, in pixels


def overlay(
    ex: Result,
    values: NDArray[np.floating],
    alpha: float = OPACITY,
    method: str | None = None,
    *,
    smooth: bool = False,
    cmap: str | None = None,
    size: int = DISPLAY_SIZE,
    on: Literal["input", "photo"] = "input",
) -> Image.Image:
    """A map over the picture, scaled by its largest value for show, as an RGB image.

    Args:
        ex: The result.
        values: ``[rows, cols]``; values below 0 get a colour of their own, and NaN none.
        alpha: Opacity of the strongest patch, in [0, 1].
        method: Whose map it is, which maps of ``heatmap`` know themselves: whether values below 0 have a colour of
            their own, and that the map is faint, as on the page, if no value reaches the floor of its unit.
        smooth: Whether neighbouring patches blend; by default each is a square.
        cmap: Name of a colour map of matplotlib; the page's colours for None.
        size: Longest side, in pixels.
        on: ``"input"``, what the model saw, or ``"photo"``, the whole photo.

    Raises:
        InputError: If the map has another shape than the grid, the opacity is not in [0, 1], there is no such colour
            map, the size is out of range, or a drawing has no photo.
    """
    method = method or getattr(values, "method", None)
    values = as_map(ex, values)
    if not (isinstance(alpha, Real) and 0 <= alpha <= 1):
        raise InputError(f"The opacity must be a number from 0 to 1, not {alpha!r}.")
    if not 1 <= whole_number(size, "The size of an overlay", 1) <= MAX_SIZE:
        raise InputError(f"The size of an overlay must be from 1 to {MAX_SIZE} pixels, not {size}.")
    if on not in ("input", "photo"):
        raise InputError(f'on must be "input" or "photo", not {on!r}.')
    picture, box = ex.image, None
    if on == "photo":
        if ex.photo is None:
            raise InputError('A drawing has no photo: leave on="photo" out.')
        sides = (*ex.geometry.source_size, *ex.geometry.source_size)
        left, top, right, bottom = (edge / side for edge, side in zip(ex.geometry.box, sides, strict=True))
        picture, box = ex.photo, (left, top, right, bottom)
    style = find_method(method).style(ex.trace.num_tokens) if method else {}
    return render.overlay(picture, values, alpha=alpha, display_size=size, smooth=smooth, cmap=cmap, box=box, **style)


def side_by_side(
    ex: Result,
    methods: Sequence[str | NDArray[np.floating]] = ("attention", "rollout", DEFAULT_METHOD),
    label: Label = None,
    *,
    cmap: str | None = None,
) -> Figure:
    """What the model saw beside several maps, each scaled by its own largest value.

    Args:
        ex: The result.
        methods: Names of methods, or maps ``[rows, cols]`` of your own.
        label: As in ``heatmap``, for the methods that depend on the class.
        cmap: As in ``overlay``.

    Returns:
        A figure of matplotlib; ``figure.savefig(path)`` writes it.

    Raises:
        InputError: If there is no such method or colour map, or a map has another shape than the grid.
        LabelError: If there is no such class.
    """
    require("matplotlib", "side_by_side")
    from matplotlib.figure import Figure  # here, because importing it takes long

    pictures = {"Input": render.overlay(ex.image, as_map(ex, [[0.0] * ex.grid[1]] * ex.grid[0]), alpha=0)}
    for number, method in enumerate(methods, 1):
        if isinstance(method, str):
            found = find_method(method)
            values = heatmap(ex, method, label if found.class_specific else None)
            about = f"\n{ex.labels[class_index(ex, label)]}" if found.class_specific else ""
            pictures[f"{found.title}{about}"] = overlay(ex, values, method=method, cmap=cmap)
        else:
            pictures[f"Map {number}"] = overlay(ex, method, cmap=cmap)
    figure = Figure((2.4 * len(pictures), 3), layout="constrained")
    axes = figure.subplots(1, len(pictures), squeeze=False)[0]
    for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
        axis.imshow(picture)
        axis.set_title(title, fontsize=9, parse_math=False)
        axis.set_axis_off()
    return figure
