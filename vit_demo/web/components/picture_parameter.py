"""The picture of an API call: an uploaded file, or the data URL of one."""

from __future__ import annotations

import gradio as gr
from gradio.data_classes import FileData, GradioRootModel


class PictureData(GradioRootModel):
    """What a caller may send; a file only with the description that Gradio's upload gives it."""

    root: FileData | str


def picture_parameter(label: str) -> gr.File:
    """A parameter that is never shown; clients treat it as a file to upload, and may send a data URL instead."""
    component = gr.File(label=label, type="filepath", visible=False)
    # Set here and not in a subclass, for which the browser would look for a component of its own.
    component.data_model = PictureData
    component.api_info = FileData.model_json_schema  # type: ignore[method-assign]
    return component
