"""The look of the page: Gradio's base theme with one accent colour, system fonts, and ``page.css``."""

import gradio as gr

from vit_demo.web.frontend.assets import read_styles

FONTS = ["Inter", "system-ui", "-apple-system", "Segoe UI", "sans-serif"]
"""Fonts of the visitor's system, so that the page loads none from elsewhere."""


def theme() -> gr.themes.Base:
    """Light and dark theme; Gradio's components and the custom ones use the same variables."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.indigo,
        neutral_hue=gr.themes.colors.zinc,
        radius_size=gr.themes.sizes.radius_lg,
        font=FONTS,
        font_mono=["ui-monospace", "Menlo", "Consolas", "monospace"],
    ).set(
        body_background_fill="#f7f7f8",
        body_background_fill_dark="#0f1013",
        body_text_color="#17181c",
        body_text_color_dark="#eceef2",
        body_text_color_subdued="#646973",
        body_text_color_subdued_dark="#9aa0ab",
        block_background_fill="#ffffff",
        block_background_fill_dark="#17181c",
        background_fill_primary="#ffffff",
        background_fill_primary_dark="#17181c",
        background_fill_secondary="#f1f1f4",
        background_fill_secondary_dark="#1f2126",
        border_color_primary="#e4e5e9",
        border_color_primary_dark="#2a2c33",
        block_border_width="1px",
        block_radius="14px",
        block_shadow="none",
        block_label_background_fill="transparent",
        color_accent="#5b4bdb",
        color_accent_soft="#eeecfb",
        color_accent_soft_dark="#25223f",
        button_secondary_background_fill="#ffffff",
        button_secondary_background_fill_dark="#34373f",
        slider_color="#5b4bdb",
        input_background_fill="#ffffff",
        input_background_fill_dark="#1f2126",
    )


def style() -> str:
    """The CSS of the page."""
    return read_styles("page.css")
