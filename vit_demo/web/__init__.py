"""The page: layout, events, custom components and API. The only package that imports Gradio."""

import vit_demo.web.gradio_setup  # noqa: F401
from vit_demo.web.launch import launch
from vit_demo.web.page import build_page

__all__ = ["build_page", "launch"]
