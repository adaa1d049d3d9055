"""The page's two components, each a `gr.HTML`: everything a visitor chooses, and the stage.

The page gets a result once and draws from it; it requests only the traces of blocks and the maps that need the model.
`COMPONENT/main.js` starts a component. The inputs have no value: `shared/pageState.js` owns the state of the page, and
whenever picture, model, patch size or fit change, `inputs/results.js` requests one result and gives it to the stage.
"""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from vit_demo.defaults import LARGE_PHOTO_PRESET
from vit_demo.methods import METHODS
from vit_demo.web import settings
from vit_demo.web.catalog.example_digits import DIGITS
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.catalog.menu import default_photo_preset, menu_entries, starting_points
from vit_demo.web.frontend.assets import VIEWS, read, read_styles, stage_styles
from vit_demo.web.frontend.constants import constants, method_entries
from vit_demo.web.frontend.modules import load_script
from vit_demo.web.requests.tour import step_code

FIRST_DIGIT = 7  # the example digit of a link that names none


def inputs(*, digits_preset: str, opening_digit: int = 8, opening_patch_size: int = 7) -> gr.HTML:
    """Tabs, drawing pad, photo input, model menu, patch size; ``opening_digit`` is the example on the paper."""
    template = read("inputs/inputs.html")
    for part in ("pad/pad", "inputs/photo", "inputs/model"):
        template = template.replace(f"<!-- {part} -->", read(f"{part}.html").strip())
    styles = ("shared/palette", "shared/widgets", "inputs/inputs", "inputs/photo", "inputs/model", "pad/pad")
    return gr.HTML(
        elem_id="choices",
        html_template=template,
        css_template=read_styles(*(f"{name}.css" for name in styles)),
        js_on_load=load_script(
            "inputs",
            constants=constants(),
            models=menu_entries(),
            defaults={"digits": digits_preset, "photos": default_photo_preset(), "digit": FIRST_DIGIT},
            opening={"picture": {"digit": opening_digit}, "patchSize": opening_patch_size},
            offer=LARGE_PHOTO_PRESET,
            customModels=settings.custom_models_allowed(),
            digits=DIGITS,
            examples=[
                {name: getattr(photo, name) for name in ("name", "title", "source", "licence")}
                for photo in EXAMPLE_PHOTOS.values()
            ],
        ),
        apply_default_css=False,
    )


def stage(value: Mapping[str, Any] | None = None, opening_digit: int | None = None) -> gr.HTML:
    """The picture under its heatmap, the prediction, and every view of it.

    ``value`` is what it shows when the page opens; ``opening_digit`` the example digit that this is.
    """
    return gr.HTML(
        value,
        elem_id="stage",
        html_template=read("stage/stage.html"),
        css_template=stage_styles(VIEWS),
        js_on_load=load_script(
            "stage",
            constants=constants(),
            registered=method_entries(METHODS.values()),
            viewNames=VIEWS,
            openingDigit=opening_digit,
            stepCode=step_code(),
            startingPoints=starting_points(),
            examples=[{"name": photo.name, "title": photo.title} for photo in EXAMPLE_PHOTOS.values()],
        ),
        apply_default_css=False,
    )
