"""Every method that gives one map of an image, by the name under which it can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods.attention import attention_from, to_grid
from vit_demo.methods.attnlrp import attnlrp
from vit_demo.methods.occlusion import occlusion
from vit_demo.methods.patch_dropping import patch_dropping
from vit_demo.methods.relevance import relevance
from vit_demo.methods.rollout import rollout
from vit_demo.methods.value_weighted import value_weighted
from vit_demo.model import Trace, ViT


@dataclass(frozen=True)
class Method:
    """One way to explain an image.

    Attributes:
        compute: ``(model, images [1, C, height, width], target, *, patch_size, keep)`` -> ``[1, rows, cols]``.
        class_specific: Whether the map depends on the class.
        many_passes: Whether it takes many forward passes, not one or two.
    """

    compute: Callable[..., Tensor]
    class_specific: bool
    many_passes: bool = False


@torch.inference_mode()
def _attention(model: ViT, images: Tensor, _: int, **layout: Tensor | int | None) -> Tensor:
    model(images, trace := Trace(), **layout)
    return to_grid(attention_from(trace, -1, _reader(model)).mean(1), trace)


@torch.inference_mode()
def _rollout(model: ViT, images: Tensor, _: int, **layout: Tensor | int | None) -> Tensor:
    model(images, trace := Trace(), **layout)
    return to_grid(rollout(trace, _reader(model)), trace)


def _value_weighted(
    model: ViT, images: Tensor, _: int, *, patch_size: int | None = None, keep: Tensor | None = None
) -> Tensor:
    return value_weighted(model, images, query=_reader(model), patch_size=patch_size, keep=keep)


def _reader(model: ViT) -> int | None:
    """The class token, or the mean of all tokens where there is none."""
    return 0 if model.config.class_token else None


METHODS: dict[str, Method] = {
    "attention": Method(_attention, class_specific=False),
    "rollout": Method(_rollout, class_specific=False),
    "value_weighted": Method(_value_weighted, class_specific=False),
    "relevance": Method(relevance, class_specific=True),
    "attnlrp": Method(attnlrp, class_specific=True),
    "occlusion": Method(occlusion, class_specific=True, many_passes=True),
    "patch_dropping": Method(patch_dropping, class_specific=True, many_passes=True),
}


def find_method(name: str) -> Method:
    """A method by its name.

    Raises:
        InputError: If there is none of that name.
    """
    if name not in METHODS:
        raise InputError(f"There is no method {name!r}: choose one of {', '.join(METHODS)}.")
    return METHODS[name]
