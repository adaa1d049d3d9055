"""The page: layout, events, custom components and API. No other package imports Gradio."""
