"""Protection in front of Gradio: limits on requests, sessions and uploads, and replaced parts of Gradio."""
