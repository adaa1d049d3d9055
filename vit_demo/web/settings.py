"""Settings of the server's operator, from environment variables."""

import os
import re

import torch

from vit_demo.defaults import HOST
from vit_demo.errors import InputError

_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w.-]+)?", re.ASCII)


def server_name() -> str:
    """The address to listen on: ``GRADIO_SERVER_NAME``, by default ``HOST``."""
    return (os.environ.get("GRADIO_SERVER_NAME") or HOST).strip("[]")


def server_port() -> int | None:
    """The port: ``GRADIO_SERVER_PORT``, or None for the first free one; ``InputError`` if it is not valid."""
    chosen = os.environ.get("GRADIO_SERVER_PORT", "")
    if chosen and not is_port(chosen):
        raise InputError(f"GRADIO_SERVER_PORT is {chosen!r}: set it to a number from 1 to 65535, or unset it.")
    return int(chosen) if chosen else None


def is_port(text: str) -> bool:
    """Whether a text is the number of a port."""
    return text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536


def custom_models_allowed() -> bool:
    """Whether visitors may use custom models from the Hub: ``VIT_DEMO_CUSTOM_MODELS``, 1 or 0.

    By default they may, except on a Hugging Face Space without a GPU.
    """
    chosen = os.environ.get("VIT_DEMO_CUSTOM_MODELS")
    if chosen is not None:
        return chosen.strip() not in ("", "0", "false", "no")
    return "SPACE_ID" not in os.environ or torch.cuda.is_available()


def is_allowed_repository(name: str) -> bool:
    """Whether visitors may use custom models, and the name has the form ``org/name`` or ``org/name@revision``."""
    return custom_models_allowed() and _REPOSITORY.fullmatch(name) is not None


def num_proxies() -> int:
    """The number of reverse proxies in a row: ``VIT_DEMO_PROXY``, by default 1 on a Hugging Face Space, otherwise 0."""
    chosen = os.environ.get("VIT_DEMO_PROXY", "").strip()
    return int(chosen) if chosen.isdecimal() else int("SPACE_ID" in os.environ)


def root_path() -> str:
    """The path below which the page is published, such as ``/demo``, or its whole address: ``GRADIO_ROOT_PATH``."""
    chosen = os.environ.get("GRADIO_ROOT_PATH", "").strip().strip("/")
    return chosen if "://" in chosen or not chosen else f"/{chosen}"


def allowed_origins() -> frozenset[str]:
    """Origins of other pages whose scripts may call this server: ``VIT_DEMO_ALLOWED_ORIGINS``, separated by spaces."""
    return frozenset(os.environ.get("VIT_DEMO_ALLOWED_ORIGINS", "").split())


def metrics_token() -> str:
    """The token that ``/metrics`` asks for: ``VIT_DEMO_METRICS``; empty, the default, closes the route."""
    return os.environ.get("VIT_DEMO_METRICS", "").strip()


def logs_json() -> bool:
    """Whether the log is lines of JSON, one more for each request: ``VIT_DEMO_LOG=json``."""
    return os.environ.get("VIT_DEMO_LOG", "") == "json"


def source_url() -> str:
    """The address of the source: ``VIT_DEMO_SOURCE_URL``, otherwise the files of the Space; empty without both."""
    chosen = os.environ.get("VIT_DEMO_SOURCE_URL", "")
    if chosen.startswith("https://"):
        return chosen
    space = os.environ.get("SPACE_ID", "")
    return f"https://huggingface.co/spaces/{space}/tree/main" if space else ""
