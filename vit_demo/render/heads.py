"""Numbers of heads as a picture: a square for each head, blocks below each other."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.checks import require


def heads_sheet(tables: Mapping[str, NDArray[np.floating]], unit: str) -> Image.Image:
    """Draws tables ``[blocks, heads]`` side by side; red is above 0, blue below, each on its own scale."""
    require("matplotlib", "A sheet")
    import matplotlib  # here, because importing it takes longer than all else that the page needs
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    blocks, heads = next(iter(tables.values())).shape
    with matplotlib.rc_context({"text.parse_math": False, "font.size": 8}):
        size = (len(tables) * (1.2 + 0.36 * heads), 1.6 + 0.36 * blocks)
        figure = Figure(size, dpi=100, layout="constrained")
        for axis, (name, values) in zip(figure.subplots(1, len(tables), squeeze=False)[0], tables.items(), strict=True):
            peak = float(np.abs(values).max()) or 1.0
            drawn = axis.imshow(values, cmap="RdBu_r", vmin=-peak, vmax=peak)
            axis.set(title=name, xlabel="head", ylabel="block", xticks=range(heads), yticks=range(blocks))
            figure.colorbar(drawn, ax=axis, label=unit, location="bottom")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
