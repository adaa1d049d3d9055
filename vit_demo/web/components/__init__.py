"""Custom components on ``gr.HTML``, each with its HTML, CSS and JavaScript beside it."""
