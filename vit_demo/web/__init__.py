"""The page: layout, events, custom components and API. The only package that imports Gradio."""
