"""Custom components on ``gr.HTML``, each with its HTML, CSS and JavaScript beside it."""

import vit_demo.web.gradio_setup  # noqa: F401
