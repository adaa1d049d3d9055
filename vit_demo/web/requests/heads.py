"""Requests of the page about heads: what each is worth to a class, and how few keep it."""

from __future__ import annotations

from dataclasses import dataclass

from vit_demo.defaults import ENOUGH_SHARE
from vit_demo.inference.exploration import Exploration
from vit_demo.web.requests import parse
from vit_demo.web.requests.parse import Json
from vit_demo.web.requests.payload import encode


@dataclass(frozen=True)
class HeadsRequest:
    """For which class, None for the predicted one, and in comparison with which, or None."""

    label: parse.Label = None
    against: parse.Against = None


def effects(result: Exploration, request: HeadsRequest) -> Json:
    """``{"effects": float32 [blocks * heads]}``: what the class loses without each head alone."""
    return {"effects": encode(result.head_effects(request.label, request.against))}


def fewest(result: Exploration, _: object) -> Json:
    """The heads, ``[[block, head], ...]``, that alone keep the predicted class; None where none do."""
    found = result.enough_heads(share=ENOUGH_SHARE)
    return {"heads": found and [list(head) for head in found.heads], "is_minimal": bool(found and found.is_minimal)}


def contributions(result: Exploration, request: HeadsRequest) -> Json:
    """What each part adds to the logit; see ``Contributions``."""
    found = result.contributions(request.label, request.against)
    names = ("tokens", "bias", "logit")
    arrays = {"heads": encode(found.heads), "mlps": encode(found.mlps)}
    return {**arrays, **{name: getattr(found, name) for name in names}}
