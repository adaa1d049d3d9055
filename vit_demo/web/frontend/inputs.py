"""The inputs of the page in `gr.HTML`: tabs, drawing pad, photo input, model menu, patch size.

It has no value: `shared/pageState.js` owns the state of the page, and `inputs/main.js` shows and changes it. Whenever
picture, model, patch size or fit change, `inputs/results.js` requests one result and gives it to the stage.
"""

from __future__ import annotations

from typing import Any

from vit_demo.web import settings
from vit_demo.web.catalog.example_digits import DIGITS
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS, to_dict
from vit_demo.web.catalog.menu import LARGE_PHOTO_PRESET, default_photo_preset, menu_entries
from vit_demo.web.frontend.assets import read, read_styles
from vit_demo.web.frontend.constants import constants
from vit_demo.web.frontend.modules import load_script
from vit_demo.web.frontend.request_html import OnRequest, RequestHTML

PARTS = (
    "shared/palette",
    "shared/widgets",
    "inputs/inputs",
    "inputs/photo",
    "inputs/model",
    "pad/pad",
)
"""The style sheets of the component."""


class Inputs(RequestHTML):
    """Everything a visitor chooses beside the stage."""

    def __init__(
        self,
        *,
        on_request: OnRequest,
        digits_preset: str,
        opening_digit: int = 7,
        **kwargs: Any,
    ) -> None:
        """Makes the inputs.

        Args:
            on_request: As in `Stage`.
            digits_preset: The model of the drawing tab when the page opens.
            opening_digit: The example digit on the paper when the page opens.
            **kwargs: What `gr.HTML` takes besides its templates, such as `elem_id`.
        """
        template = read("inputs/inputs.html")
        for part in ("pad/pad", "inputs/photo", "inputs/model"):
            template = template.replace(f"<!-- {part} -->", read(f"{part}.html").strip())
        super().__init__(
            html_template=template,
            css_template=read_styles(*(f"{part}.css" for part in PARTS)),
            js_on_load=load_script(
                "inputs",
                constants=constants(),
                models=menu_entries(),
                defaults={"digits": digits_preset, "photos": default_photo_preset(), "digit": opening_digit},
                offer=LARGE_PHOTO_PRESET,
                customModels=settings.custom_models_allowed(),
                digits=DIGITS,
                examples=[to_dict(photo) for photo in EXAMPLE_PHOTOS.values()],
            ),
            on_request=on_request,
            **kwargs,
        )
