"""Maps to pictures. Imports numpy, pillow and matplotlib."""

from vit_demo.render.overlay import COLOUR_MAP, colourise, overlay
from vit_demo.render.sheet import contact_sheet

__all__ = ["COLOUR_MAP", "colourise", "contact_sheet", "overlay"]
