"""Which part of a photo the model saw: the whole photo, small, in `gr.HTML`, with what was cut off dimmed.

It has no value: `model_view/main.js` follows the stage in the browser, and a click on it chooses the patch there.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from vit_demo.web.assets import read
from vit_demo.web.components.modules import load_script


class ModelView(gr.HTML):
    """The whole photo of the result on the stage, beside a sentence on how it was fitted."""

    def __init__(self, **kwargs: Any) -> None:
        """Takes what `gr.HTML` takes besides its templates, such as `elem_id`."""
        super().__init__(
            html_template=read("components/model_view/model_view.html"),
            css_template=read("components/model_view/model_view.css"),
            js_on_load=load_script("model_view"),
            apply_default_css=False,
            **kwargs,
        )
