"""Predictions of labelled images: accuracy, and calibration."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

BINS = 15  # bins of confidence, of equal width over [0, 1]


@dataclass(frozen=True)
class Predictions:
    """The logits ``[N, classes]`` of images beside their labels, int64 ``[N]``."""

    logits: Tensor
    labels: Tensor

    @cached_property
    def confidence(self) -> Tensor:
        """The probability ``[N]`` of the predicted class."""
        return self.logits.softmax(1).amax(1)

    @cached_property
    def correct(self) -> Tensor:
        """Whether the predicted class is the label: bool ``[N]``."""
        return self.logits.argmax(1) == self.labels

    @property
    def _bins(self) -> Tensor:
        return (self.confidence * BINS).long().clamp(max=BINS - 1)

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions, in [0, 1]."""
        return self.correct.float().mean().item()

    def reliability(self) -> list[tuple[float, float, int]]:
        """Mean confidence, accuracy and number of the predictions in each bin of confidence that has any."""
        groups = [self._bins == i for i in range(BINS)]
        return [
            (self.confidence[group].mean().item(), self.correct[group].float().mean().item(), int(group.sum()))
            for group in groups
            if group.any()
        ]

    def calibration_error(self) -> float:
        """Expected calibration error, in [0, 1] (Guo et al., 2017, https://arxiv.org/abs/1706.04599)."""
        differences = (count * abs(confidence - accuracy) for confidence, accuracy, count in self.reliability())
        return sum(differences) / len(self.labels)

    def sampling_error(self) -> float:
        """The calibration error that so few images show even under perfect calibration: the mean of 200 draws."""
        generator = torch.Generator().manual_seed(0)
        surplus = self.confidence - torch.bernoulli(self.confidence.expand(200, -1), generator=generator)
        sums = surplus.new_zeros(200, BINS).index_add_(1, self._bins, surplus)  # of each bin: count times difference
        return sums.abs().sum(1).mean().item() / len(self.labels)
