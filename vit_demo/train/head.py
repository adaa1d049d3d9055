"""The head of a network in training: it begins with trained rows where there are some, and may have rows to spare.

The spare rows guess a teacher's features, so that the class token has to hold them (FitNets; Romero et al., 2014,
https://arxiv.org/abs/1412.6550). Nobody needs them afterwards.
"""

from __future__ import annotations

from typing import cast

from torch import nn

from vit_demo.vit import ViT

_HEAD = ("head.weight", "head.bias")


def take_over(model: nn.Module, start: ViT) -> None:
    """Copies a trained network's weights; rows that its head lacks stay as they are."""
    state, own = start.state_dict(), model.state_dict()
    for name in _HEAD:
        rows, state[name] = state[name], own[name].clone()
        state[name][: len(rows)] = rows
    model.load_state_dict(state)


def without_guesses(model: nn.Module, classes: int) -> ViT:
    """A copy of a network whose head has the rows of the classes only."""
    state = model.state_dict()
    state |= {name: state[name][:classes] for name in _HEAD}
    shipped = ViT(cast(ViT, model).config.with_classes(classes)).to(state[_HEAD[0]].device)
    shipped.load_state_dict(state)
    return shipped
