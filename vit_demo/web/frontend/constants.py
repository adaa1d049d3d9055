"""Facts of the package that the page's JavaScript needs, too; they stand in Python alone and are sent with the page."""

from collections.abc import Iterable
from typing import Any

from vit_demo.defaults import ENOUGH_SHARE, MAX_PICTURE_BYTES, NUM_RANDOM_ORDERS
from vit_demo.methods import Method
from vit_demo.render import colours
from vit_demo.render.overlay import COARSE_PATCHES


def constants() -> dict[str, Any]:
    """The facts by their names in `shared/constants.js`: JSON values."""
    return {
        "photoScale": colours.PHOTO,
        "signedPhotoScale": colours.PHOTO_SIGNED,
        "paperScale": colours.PAPER,
        "signedPaperScale": colours.PAPER_SIGNED,
        "whiteOfPaper": colours.WHITE_OF_PAPER,
        "blackOfInk": colours.BLACK_OF_INK,
        "coarsePatches": COARSE_PATCHES,
        "numOrders": NUM_RANDOM_ORDERS,
        "enoughShare": ENOUGH_SHARE,
        "maxUploadBytes": MAX_PICTURE_BYTES,
    }


def method_entries(methods: Iterable[Method]) -> list[dict[str, Any]]:
    """Explanation methods, as `describeMethods` in `stage/methods.js` takes them."""
    return [
        {**method.to_dict(), "many_passes": method.is_slow, "compares_classes": method.compares_classes}
        for method in methods
    ]
