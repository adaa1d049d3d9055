"""Several results side by side, all maps on one colour scale.

Colours grow with the square root of a value, so that flat maps can be seen beside peaked ones.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.checks import require
from vit_demo.render.colours import WHITE_OF_PAPER, heat_colours
from vit_demo.render.overlay import overlay

OPACITY = 0.8


@dataclass(frozen=True)
class ComparisonRow:
    """One row of a sheet: text at its left, what the model saw, and the map ``[rows, cols]`` of each column."""

    lines: Sequence[str]
    image: Image.Image
    maps: Sequence[NDArray[np.floating]]
    captions: Sequence[str]


def comparison_sheet(titles: Sequence[str], rows: Sequence[ComparisonRow], unit: str) -> Image.Image:
    """Draws results as rows and maps as columns; the colour bar ends at the largest absolute value of all maps."""
    require("matplotlib", "A sheet")
    import matplotlib  # here, because importing it takes longer than all else that the page needs
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.figure import Figure

    everything = np.concatenate([values.ravel() for row in rows for values in row.maps] or [np.zeros(1)])
    peak, low = float(np.abs(everything).max()), -1 if everything.min() < 0 else 0
    label_width = 0.07 * max(len(line) for row in rows for line in row.lines)  # inches, at 8 points
    # Names are no formulas, and may have characters that the font lacks.
    with matplotlib.rc_context({"text.parse_math": False, "font.size": 8}), warnings.catch_warnings(action="ignore"):
        size = (label_width + 1.9 * (1 + len(titles)), 1.2 + 2.2 * len(rows))
        figure = Figure(size, dpi=100, layout="constrained")
        axes = figure.subplots(len(rows), 1 + len(titles), squeeze=False)
        for axis, title in zip(axes[0], ["Input", *titles], strict=True):
            axis.set_title(title)
        for line, row in zip(axes, rows, strict=True):
            pictures = [overlay(row.image, np.zeros((1, 1)), alpha=0)]
            for values in row.maps:
                root = np.sign(values) * np.sqrt(np.abs(values))
                pictures.append(overlay(row.image, root, alpha=OPACITY, signed=low < 0, floor=peak**0.5))
            for axis, picture, caption in zip(line, pictures, ["", *row.captions], strict=True):
                axis.imshow(picture)
                axis.set(xticks=[], yticks=[], xlabel=caption)
                axis.spines[:].set_visible(False)
            line[0].set_ylabel("\n".join(row.lines), rotation=0, ha="right", va="center")
        heat = heat_colours(np.linspace(low, 1, 256), 1.0, signed=low < 0)
        on_white = WHITE_OF_PAPER + (heat[..., :3] - WHITE_OF_PAPER) * heat[..., 3:]
        colours = ListedColormap(on_white / 255)
        bar = figure.colorbar(
            ScalarMappable(Normalize(low, 1), colours), ax=axes, location="bottom", aspect=40, label=unit
        )
        shares = (-1, 0, 1) if low else (0, 0.5, 1)
        bar.set_ticks(shares, labels=[f"{share * abs(share) * peak:.2g}" for share in shares])
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
