"""A result in a notebook: the stage of the page in one piece of HTML, without a server. Does not import Gradio."""

from vit_demo.web.notebook.show import to_html

__all__ = ["to_html"]
