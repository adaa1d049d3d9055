"""The models that a visitor may name: presets, and repositories of the Hub; never a folder of the server."""

import re
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job
from vit_demo.web import settings
from vit_demo.weights import PRESETS, Preset

MAX_NAME_LENGTH = 200
"""Characters of a preset's, a method's or a class's name in a request."""

PROMPT = "Enter a Vision Transformer on the Hugging Face Hub, as org/name."


def model_name(text: Any) -> str:
    """The name of a preset, or of a repository, also given by the URL of its page; ``PresetError`` if it is neither."""
    if not isinstance(text, str):
        raise PresetError(PROMPT)
    if text in PRESETS:
        return text
    name = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", text.strip()[:MAX_NAME_LENGTH]).rstrip("/")
    if not settings.is_allowed_repository(name):
        raise PresetError(f"“{text.strip()[:80]}” is not the name of a model on the Hub: write it as org/name.")
    return name


def is_trusted(name: str) -> bool:
    """Whether a preset is in the table; a visitor's custom model gets no token and no folder of this machine."""
    return name in PRESETS


def prepare(name: str) -> Job[Preset]:
    """The job that looks up a preset for a visitor and downloads its weights."""
    return get_engine().prepare(name, lambda *_: None, trusted=is_trusted(name))


def ready(name: str) -> Preset | None:
    """A visitor's preset if it needs no download, else None."""
    return get_engine().ready(name, trusted=is_trusted(name))


async def get_preset(name: str) -> Preset:
    """A visitor's preset, downloaded if necessary; ``InputError`` if there is none, or it cannot be downloaded."""
    return ready(name) or await prepare(name).result_async()
