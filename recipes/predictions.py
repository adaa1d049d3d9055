"""A network's predictions for a dataset of images, their loss and confusion matrix, and the temperature."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms.v2 import functional as transforms

from recipes.image_dataset import ImageDataset
from vit_demo.training.predictions import Predictions as PlainPredictions
from vit_demo.weights import Preset


@dataclass(frozen=True)
class Predictions(PlainPredictions):
    """The logits ``[N, classes]`` of a dataset's images beside their labels, int64 ``[N]``, and their weights."""

    weights: Tensor | None = None

    def confident(self, preset: Preset) -> Tensor:
        """Bool ``[N]``: whether confidence is not low by the limits of a preset."""
        return torch.from_numpy(preset.is_confident(self.logits.softmax(1).numpy()))

    def loss(self, temperature: Tensor | float = 1.0) -> Tensor:
        """Mean cross-entropy, in nats, of the logits divided by a temperature."""
        losses = F.cross_entropy(self.logits / temperature, self.labels, reduction="none")
        return losses.mean() if self.weights is None else (losses * self.weights).sum() / self.weights.sum()

    def confusion_matrix(self) -> Tensor:
        """int64 ``[classes, classes]``: number of images of each class (row) by prediction (column)."""
        classes = self.logits.shape[1]
        pairs = self.labels * classes + self.logits.argmax(1)
        return torch.bincount(pairs, minlength=classes * classes).view(classes, classes)


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
