"""Custom components on ``gr.HTML``, each with its HTML, CSS and JavaScript beside it."""

import vit_demo.web.guard.replacements  # noqa: F401  before any component class is defined
