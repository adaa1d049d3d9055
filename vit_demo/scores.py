"""What the logits of a network become: the one function behind every probability of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from torch import Tensor  # the command line starts without torch

Scores = Literal["softmax", "sigmoid", "none"]  # one class is right, each may be, or there are no probabilities

SCORES: tuple[Scores, ...] = get_args(Scores)

TASKS: dict[str, Scores] = {"multi_label_classification": "sigmoid", "regression": "none"}
"""Scores by the ``problem_type`` of transformers, where they are not a softmax."""


def scores_for(problem_type: str, num_classes: int) -> Scores:
    """The scores of a network, as transformers' pipeline chooses them: by its task, or by its number of outputs."""
    usual: Scores = "sigmoid" if num_classes == 1 else "softmax"
    return TASKS.get(problem_type, usual)


def to_scores(logits: Tensor, scores: Scores, *, log: bool = False) -> Tensor:
    """The probabilities of logits ``[..., K]``, or their logarithms; with ``"none"`` the logits as they are."""
    if scores == "sigmoid":
        from torch.nn.functional import logsigmoid

        return logsigmoid(logits) if log else logits.sigmoid()
    if scores == "softmax":
        return logits.log_softmax(-1) if log else logits.softmax(-1)
    return logits


def as_text(score: float, scores: Scores) -> str:
    """A score for people: in percent, never a rounded 0 or 100, or with four digits where it is no probability."""
    if scores == "none":
        return f"{score:.4g}"
    return "<0.1 %" if score < 0.001 else ">99.9 %" if 0.9995 <= score < 1 else f"{100 * score:.1f} %"
