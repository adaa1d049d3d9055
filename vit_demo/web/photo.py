"""The photo input: drop, paste or take a photo."""

from __future__ import annotations

import gradio as gr
from gradio.data_classes import ImageData


class PhotoInput(gr.Image):
    """``gr.Image`` that passes on any file unopened, so that ``vit_demo.images`` decodes it within its limits.

    Gradio's component would open it first, and report a file that it cannot open without a reason.
    """

    def preprocess(self, payload: ImageData | None) -> str | None:
        """Returns the path of the uploaded file, or None."""
        return payload.path if payload else None

    def get_block_name(self) -> str:
        """Makes the browser use the component of ``gr.Image``."""
        return "image"
