"""The page: layout, events, the two custom components, and the API. The only part that knows Gradio."""

from vit_demo.web.launch import launch
from vit_demo.web.page import build

__all__ = ["build", "launch"]
