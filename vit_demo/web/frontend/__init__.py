"""The page in the browser: components on ``gr.HTML`` with their HTML, CSS and JavaScript. Does not import Gradio."""
