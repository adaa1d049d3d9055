"""The pictures of an API call: uploaded files, or the data URLs of some."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.data_classes import FileData, GradioRootModel


class PictureData(GradioRootModel):
    """What a caller may send; a file only with the description that Gradio's upload gives it."""

    root: FileData | str


class PicturesData(GradioRootModel):
    """Several of them."""

    root: list[FileData | str]


def picture_parameter(label: str) -> gr.File:
    """A parameter that is never shown; clients treat it as a file to upload, and may send a data URL instead."""
    return _file_parameter(gr.File(label=label, type="filepath", visible=False), PictureData, FileData)


def pictures_parameter(label: str) -> gr.File:
    """As ``picture_parameter``, for a list of pictures."""
    component = gr.File(label=label, type="filepath", file_count="multiple", visible=False)
    return _file_parameter(component, PicturesData, gr.data_classes.ListFiles)


def _file_parameter(component: gr.File, data: type[GradioRootModel], schema_model: Any) -> gr.File:
    # Set here and not in a subclass, for which the browser would look for a component of its own.
    component.data_model = data
    component.api_info = schema_model.model_json_schema  # type: ignore[method-assign]
    return component
