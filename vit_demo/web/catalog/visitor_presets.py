"""The models that a visitor may name: presets and repositories of the Hub, but no folders of the server.

Only presets are trusted: a visitor's custom model gets no token and goes to a separate cache.
"""

import re
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job
from vit_demo.web import settings
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.kept_networks import is_trained_name, trained_preset
from vit_demo.weights.untrusted_text import sanitize

MAX_NAME_LENGTH = 200  # characters of the name of a preset, method or class in a request

PROMPT = "Enter a Vision Transformer on the Hugging Face Hub, as org/name."


def model_name(text: Any) -> str:
    """The name of a preset, or of a repository by its name or URL; ``PresetError`` if the text is neither."""
    if not isinstance(text, str):
        raise PresetError(PROMPT)
    if text in PRESETS or is_trained_name(text):
        return text
    name = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", text.strip()[:MAX_NAME_LENGTH]).rstrip("/")
    if not settings.is_allowed_repository(name):
        raise PresetError("“{0}” is not the name of a model on the Hub: write it as org/name.", sanitize(text, 80))
    return name


def prepare(name: str) -> Job[Preset]:
    """The job that looks up a preset for a visitor and downloads its weights."""
    return get_engine().prepare(name, lambda *_: None, trusted=name in PRESETS)


def ready(name: str) -> Preset | None:
    """A preset for a visitor, or None if it must be downloaded; ``PresetError`` for a trained network that is gone."""
    if is_trained_name(name):
        return trained_preset(name)
    return get_engine().ready(name, trusted=name in PRESETS)


async def get_preset(name: str) -> Preset:
    """A preset for a visitor, downloaded if necessary; ``InputError`` if that fails."""
    return ready(name) or await prepare(name).result_async()
