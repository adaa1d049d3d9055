"""How good a network is: accuracy, loss, which class is taken for which, and whether its confidence is deserved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.training.augment import augment_digits, augment_photos
from vit_demo.training.data import Labelled
from vit_demo.weights.preset import Preset


@dataclass(frozen=True)
class Score:
    """What one look at a labelled set found.

    Attributes:
        logits: ``[N, classes]``, one row an image.
        labels: ``[N]``, the right answers.
    """

    logits: Tensor
    labels: Tensor

    @cached_property
    def confidence(self) -> Tensor:
        """``[N]`` in [0, 1]: the probability of the answer given."""
        return self.logits.softmax(1).amax(1)

    @cached_property
    def right(self) -> Tensor:
        """``[N]``: whether the answer is right."""
        return self.logits.argmax(1) == self.labels

    @property
    def accuracy(self) -> float:
        """Share of right answers, in [0, 1]."""
        return self.right.float().mean().item()

    @property
    def loss(self) -> float:
        """Mean cross-entropy, in nats."""
        return F.cross_entropy(self.logits, self.labels).item()

    def confusion(self) -> Tensor:
        """``[classes, classes]`` int64: how many of a class (row) got which answer (column)."""
        classes = self.logits.shape[1]
        pairs = self.labels * classes + self.logits.argmax(1)
        return torch.bincount(pairs, minlength=classes * classes).view(classes, classes)

    def reliability(self, bins: int = 15) -> list[tuple[float, float, int]]:
        """Answers grouped by confidence, in bins of equal width over [0, 1].

        Returns:
            For each bin that is not empty: mean confidence, accuracy, and how many answers.
        """
        index = (self.confidence * bins).long().clamp(max=bins - 1)
        groups = [index == i for i in range(bins)]
        return [
            (self.confidence[g].mean().item(), self.right[g].float().mean().item(), int(g.sum()))
            for g in groups
            if g.any()
        ]

    def calibration_error(self, bins: int = 15) -> float:
        """Expected calibration error, in [0, 1] (Guo et al., 2017, https://arxiv.org/abs/1706.04599).

        The difference between confidence and accuracy in each bin of ``reliability``, weighted by its answers.
        """
        return sum(count * abs(sure - right) for sure, right, count in self.reliability(bins)) / len(self.labels)


def prepare(
    images: Tensor, preset: Preset, *, augment: bool = False, least: float = 1.0, crops: Tensor | None = None
) -> Tensor:
    """uint8 ``[B, C, side, side]`` to what the network sees: float32, changed at random if wanted, normalised.

    Photos to be changed may have any side; they come out as large as the preset wants them.

    Args:
        images: The images.
        preset: Decides the changes and the normalisation.
        augment: Whether to change them.
        least: Of digits, as in ``augment_digits``.
        crops: Of photos, ``[B, 4]``; drawn at random by default.
    """
    x = images.float() / 255
    if augment:
        x = augment_digits(x, least) if preset.task == "digits" else augment_photos(x, crops, preset.image_size)
    mean, std = (torch.tensor(v, device=x.device).view(1, -1, 1, 1) for v in (preset.mean, preset.std))
    return x.sub_(mean).div_(std)


@torch.inference_mode()
def score(model: nn.Module, data: Labelled, preset: Preset, patch_size: int, *, batch_size: int = 250) -> Score:
    """Asks a model about every image of a set, at one patch size.

    Args:
        model: Answers ``model(images, patch_size=...)`` with logits.
        data: Images and labels.
        preset: Decides the normalisation.
        patch_size: In pixels.
        batch_size: Images a step.
    """
    model.eval()
    device = next(model.parameters()).device
    logits = [
        model(prepare(images.to(device), preset), patch_size=patch_size).float().cpu()
        for images in data.images.split(batch_size)
    ]
    return Score(torch.cat(logits), data.labels)


def best_temperature(scores: list[Score]) -> float:
    """The one number to divide logits by that makes the mean loss of some scores least (Guo et al., 2017).

    Args:
        scores: Of a part that is not the test part, at one or several patch sizes.
    """
    log_t = torch.zeros((), requires_grad=True)
    optimiser = torch.optim.LBFGS([log_t], max_iter=50, line_search_fn="strong_wolfe")
    logits, labels = torch.cat([s.logits for s in scores]), torch.cat([s.labels for s in scores])

    def loss() -> float:
        optimiser.zero_grad()
        value = F.cross_entropy(logits / log_t.exp(), labels)
        value.backward()
        return value.item()

    optimiser.step(loss)
    return log_t.exp().item()
