"""Maps to pictures. Imports numpy and pillow."""

from vit_demo.render.colours import heat_colours
from vit_demo.render.comparison import ComparisonRow, comparison_sheet
from vit_demo.render.heads import heads_sheet
from vit_demo.render.overlay import contact_sheet, ink_on_paper, overlay

__all__ = [
    "ComparisonRow",
    "comparison_sheet",
    "contact_sheet",
    "heads_sheet",
    "heat_colours",
    "ink_on_paper",
    "overlay",
]
