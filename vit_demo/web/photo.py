"""Where a photo is dropped, pasted or taken."""

from __future__ import annotations

import gradio as gr
from gradio.data_classes import ImageData


class PhotoInput(gr.Image):
    """``gr.Image`` that hands on any file unopened, so that our own reader decides what to say about it.

    Gradio's opens it first, and answers what it cannot open with a bare error.
    """

    def preprocess(self, payload: ImageData | None) -> str | None:
        """Returns the path of the uploaded file, or None."""
        return payload.path if payload else None

    def get_block_name(self) -> str:
        """Tells the browser to show Gradio's own component."""
        return "image"
