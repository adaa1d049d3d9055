"""The page: layout, events, the custom components, and the API. The only part that knows Gradio."""

import vit_demo.web.gradio_setup  # noqa: F401
from vit_demo.web.launch import launch
from vit_demo.web.page import build

__all__ = ["build", "launch"]
