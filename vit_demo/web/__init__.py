"""The page: layout, events, custom components and API. The only package that imports Gradio."""

from typing import TYPE_CHECKING

from vit_demo.lazy import lazy_names

if TYPE_CHECKING:
    from vit_demo.web.page import build_page
    from vit_demo.web.server import launch

__all__ = ["build_page", "launch"]

__getattr__ = lazy_names(__name__, {"build_page": "vit_demo.web.page", "launch": "vit_demo.web.server"})
