"""What the operator of a server may set, by environment variables."""

from __future__ import annotations

import os
import re

import torch

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w.-]+)?", re.ASCII)


def custom_models() -> bool:
    """Whether visitors may bring models of their own from the Hub: ``VIT_DEMO_CUSTOM_MODELS``, 1 or 0.

    Where it is not set they may, but for a Hugging Face Space without a GPU.
    """
    chosen = os.environ.get("VIT_DEMO_CUSTOM_MODELS")
    if chosen is not None:
        return chosen.strip() not in ("", "0", "false", "no")
    return "SPACE_ID" not in os.environ or torch.cuda.is_available()


def is_repository(name: str) -> bool:
    """Whether a name can be that of a repository, ``org/name`` or ``org/name@revision``, and visitors may use one."""
    return custom_models() and _NAME.fullmatch(name) is not None


def behind_proxy() -> bool:
    """Whether a reverse proxy adds each visitor's address to ``X-Forwarded-For``: ``VIT_DEMO_PROXY=1``, or a Space."""
    return os.environ.get("VIT_DEMO_PROXY") == "1" or "SPACE_ID" in os.environ


def allowed_origins() -> frozenset[str]:
    """Other web pages whose scripts may call this server: ``VIT_DEMO_ALLOWED_ORIGINS``, separated by spaces."""
    return frozenset(os.environ.get("VIT_DEMO_ALLOWED_ORIGINS", "").split())
