"""What must be set in Gradio before any component class of ours is made."""

from gradio import component_meta

component_meta.create_or_modify_pyi = lambda *_: None  # else it writes stub files into this package
