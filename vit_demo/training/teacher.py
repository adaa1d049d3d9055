"""A small convolutional network that learns digits fast and well, for the Vision Transformers to learn from.

Convolution knows from the start that neighbours belong together, which a ViT has to find out; learning from the answers
of a network that knows makes up for it (Touvron et al., 2020, https://arxiv.org/abs/2012.12877).
"""

from __future__ import annotations

from torch import Tensor, nn


class ConvNet(nn.Module):
    """Six 3 x 3 convolutions with batch normalisation, in pairs of 24, 48 and 96 channels: 163 k weights."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        previous = 1
        for channels in (24, 48, 96):
            for _ in range(2):
                layers += [nn.Conv2d(previous, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
                previous = channels
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(previous, num_classes)

    def forward(self, images: Tensor, *, patch_size: int | None = None) -> Tensor:
        """Logits ``[B, num_classes]`` of ``[B, 1, 28, 28]``; there are no patches, so their size changes nothing."""
        return self.head(self.layers(images).mean((2, 3)))  # [B, 96, 3, 3] -> [B, 96]
