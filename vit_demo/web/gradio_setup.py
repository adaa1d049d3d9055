"""Settings of Gradio that must be in place before a component class is defined."""

from gradio import component_meta

component_meta.create_or_modify_pyi = lambda *_: None  # otherwise Gradio writes stub files into this package
