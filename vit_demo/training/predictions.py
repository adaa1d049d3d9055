"""A network's predictions for a labelled dataset, the figures computed from them, and calibration."""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms.v2 import functional as transforms

from vit_demo.training.image_dataset import ImageDataset
from vit_demo.weights.preset import Preset

BINS = 15
"""Of confidence, of equal width over [0, 1]."""


@dataclass(frozen=True)
class Predictions:
    """The logits ``[N, classes]`` of a dataset's images beside their labels, int64 ``[N]``, and their weights."""

    logits: Tensor
    labels: Tensor
    weights: Tensor | None = None

    @cached_property
    def confidence(self) -> Tensor:
        """``[N]`` in [0, 1]: the probability of the predicted class."""
        return self.logits.softmax(1).amax(1)

    @cached_property
    def correct(self) -> Tensor:
        """Bool ``[N]``: whether the predicted class is the label."""
        return self.logits.argmax(1) == self.labels

    @property
    def _bins(self) -> Tensor:
        return (self.confidence * BINS).long().clamp(max=BINS - 1)

    def confident(self, preset: Preset) -> Tensor:
        """Bool ``[N]``: whether confidence is not low by the limits of a preset."""
        return torch.from_numpy(preset.is_confident(self.logits.softmax(1).numpy()))

    @property
    def accuracy(self) -> float:
        """Fraction of correct predictions, in [0, 1]."""
        return self.correct.float().mean().item()

    def loss(self, temperature: Tensor | float = 1.0) -> Tensor:
        """Mean cross-entropy, in nats, of the logits divided by a temperature."""
        losses = F.cross_entropy(self.logits / temperature, self.labels, reduction="none")
        return losses.mean() if self.weights is None else (losses * self.weights).sum() / self.weights.sum()

    def confusion_matrix(self) -> Tensor:
        """int64 ``[classes, classes]``: number of images of each class (row) by prediction (column)."""
        classes = self.logits.shape[1]
        pairs = self.labels * classes + self.logits.argmax(1)
        return torch.bincount(pairs, minlength=classes * classes).view(classes, classes)

    def reliability(self) -> list[tuple[float, float, int]]:
        """Mean confidence, accuracy and number of the predictions in each bin of confidence that has any."""
        groups = [self._bins == i for i in range(BINS)]
        return [
            (self.confidence[group].mean().item(), self.correct[group].float().mean().item(), int(group.sum()))
            for group in groups
            if group.any()
        ]

    def calibration_error(self) -> float:
        """Expected calibration error, in [0, 1] (Guo et al., 2017, https://arxiv.org/abs/1706.04599).

        The mean absolute difference between confidence and accuracy over the bins, weighted by their size.
        """
        differences = (count * abs(confidence - accuracy) for confidence, accuracy, count in self.reliability())
        return sum(differences) / len(self.labels)

    def sampling_error(self) -> float:
        """The calibration error expected of perfect calibration, in [0, 1]: what so few images cause by themselves.

        The mean over 200 draws, in each of which a prediction is correct with the probability that is its
        confidence. Seeded.
        """
        generator = torch.Generator().manual_seed(0)
        surplus = self.confidence - torch.bernoulli(self.confidence.expand(200, -1), generator=generator)
        sums = surplus.new_zeros(200, BINS).index_add_(1, self._bins, surplus)  # of each bin: count times difference
        return sums.abs().sum(1).mean().item() / len(self.labels)


def normalise(images: Tensor, preset: Preset) -> Tensor:
    """Normalises images ``[B, C, height, width]`` in [0, 1] by a preset's mean and standard deviation."""
    return transforms.normalize(images, list(preset.mean), list(preset.std))


@torch.no_grad()
def predict(
    model: nn.Module, data: ImageDataset, preset: Preset, patch_size: int, *, batch_size: int = 250
) -> Predictions:
    """A model's logits for all images of a dataset at one patch size; it is put into eval mode."""
    assert isinstance(data.images, Tensor)
    model.eval()
    device = next(model.parameters()).device
    logits = [
        model(normalise(images.to(device).float() / 255, preset), patch_size=patch_size).float().cpu()
        for images in data.images.split(batch_size)
    ]
    return Predictions(torch.cat(logits), data.labels, data.weights)


def fit_temperature(predictions: list[Predictions]) -> float:
    """The temperature that minimises the mean loss on validation data (Guo et al., 2017).

    Divided by it, logits give calibrated confidence, and no prediction changes.
    """
    log_temperature = torch.zeros((), requires_grad=True)
    optimiser = torch.optim.LBFGS([log_temperature], max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = torch.stack([found.loss(log_temperature.exp()) for found in predictions]).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    return log_temperature.exp().item()
