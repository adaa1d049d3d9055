"""Constants of the package that the page's JavaScript needs, too; they are sent with the page."""

from collections.abc import Iterable
from typing import Any

from vit_demo.defaults import (
    ENOUGH_SHARE,
    IMPROBABLE,
    MAX_LABEL,
    MAX_PICTURE_BYTES,
    MAX_TAUGHT_CLASSES,
    MAX_TAUGHT_PICTURES,
    NUM_CLASSES,
    NUM_RANDOM_ORDERS,
)
from vit_demo.methods import Method
from vit_demo.render import colours
from vit_demo.web.catalog.method_docs import board_ranks

COLOURS = {
    "body_background_fill": ("#fbfbfa", "#131418"),
    "body_text_color": ("#17181c", "#eceef2"),
    "body_text_color_subdued": ("#646973", "#9aa0ab"),
    "block_background_fill": ("#fbfbfa", "#131418"),
    "background_fill_primary": ("#fbfbfa", "#131418"),
    "background_fill_secondary": ("#f1f1f4", "#1f2126"),
    "border_color_primary": ("#e4e5e9", "#2a2c33"),
    "color_accent": ("#5146d8", "#5146d8"),
    "color_accent_soft": ("#eeecfb", "#25223f"),
}
"""Colours of the page, light and dark, by the names of Gradio's variables."""

MAX_PREVIEW_CHARACTERS = 800
"""Characters of a drawing's strokes in an address of which a preview shows the picture."""


def constants() -> dict[str, Any]:
    """The constants as JSON values by their names in `shared/constants.js`."""
    return {
        "scale": colours.SCALE,
        "signedScale": colours.SIGNED_SCALE,
        "whiteOfPaper": colours.WHITE_OF_PAPER,
        "blackOfInk": colours.BLACK_OF_INK,
        "numOrders": NUM_RANDOM_ORDERS,
        "numClasses": NUM_CLASSES,
        "enoughShare": ENOUGH_SHARE,
        "improbable": IMPROBABLE,
        "maxUploadBytes": MAX_PICTURE_BYTES,
        "maxTaughtClasses": MAX_TAUGHT_CLASSES,
        "maxTaughtPictures": MAX_TAUGHT_PICTURES,
        "maxLabel": MAX_LABEL,
        "maxPreviewCharacters": MAX_PREVIEW_CHARACTERS,
    }


def method_entries(methods: Iterable[Method]) -> list[dict[str, Any]]:
    """Explanation methods in the form that `describeMethods` in `stage/methods.js` takes."""
    ranks = board_ranks()
    places = {
        method: {network: of_network[method] for network, of_network in ranks.items()} for method in ranks.get("", {})
    }
    return [
        {
            **method.to_dict(),
            "many_passes": method.is_slow,
            "compares_classes": method.compares_classes,
            "places": places.get(method.name),
        }
        for method in methods
    ]
