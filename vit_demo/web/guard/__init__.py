"""What stands before Gradio: limits on requests, sessions and uploads, and what of Gradio is replaced."""
