"""Custom models: the names that a visitor may give to a repository of the Hub; never a folder of the server."""

from __future__ import annotations

import re
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.web import settings
from vit_demo.web.guard.limits import MAX_NAME_LENGTH
from vit_demo.weights import PRESETS

PROMPT = "Enter a Vision Transformer on the Hugging Face Hub, as org/name."


def model_name(text: Any) -> str:
    """The name of a preset, or of a repository, also given by the URL of its page.

    Raises:
        PresetError: If the text is neither.
    """
    if not isinstance(text, str):
        raise PresetError(PROMPT)
    if text in PRESETS:
        return text
    name = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", text.strip()[:MAX_NAME_LENGTH]).rstrip("/")
    if not settings.is_allowed_repository(name):
        raise PresetError(f"“{text.strip()[:80]}” is not the name of a model on the Hub: write it as org/name.")
    return name
