"""The teachers: a small convolutional network for the digits, a pretrained ViT for the photos."""

from __future__ import annotations

import csv
from pathlib import Path

import torch
from torch import Tensor, nn

from vit_demo.errors import InputError
from vit_demo.model import ViT
from vit_demo.model.config import VIT_TINY
from vit_demo.training.data import find_file, open_arrays
from vit_demo.training.photos import PHOTO_SETS, load_wnids

PRETRAINED_VIT = "vit_ti16_224.npz"
"""The weights of a ViT-Ti/16 trained on ImageNet's 1,000 classes at 224 pixels in [-1, 1], under timm's names."""


class ConvNet(nn.Module):
    """Six 3 x 3 convolutions with batch normalisation, in pairs of 24, 48 and 96 channels: 163,000 parameters.

    A convolution has locality built in, which a ViT must learn; distillation passes it on (Touvron et al., 2020,
    https://arxiv.org/abs/2012.12877).
    """

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
        """Logits ``[B, num_classes]`` of images ``[B, 1, 28, 28]``; the patch size has no effect."""
        return self.head(self.layers(images).mean((2, 3)))  # [B, 96, 3, 3] -> [B, 96]


def load_pretrained_teacher(folder: Path) -> ViT:
    """Loads the pretrained ViT-Ti/16 with its classes reordered: first those of ``PHOTO_SETS``, then all others.

    Args:
        folder: Holds the photo sets and, directly or in a subfolder ``vit_ti16_imagenet1k``, the weights and a table
            ``classes.csv`` with columns ``wnid`` and ``class_index``.

    Raises:
        InputError: If one of the files is missing.
    """
    weights, table = (find_file(folder, name, "vit_ti16_imagenet1k") for name in (PRETRAINED_VIT, "classes.csv"))
    if weights is None or table is None:
        raise InputError(f"No {PRETRAINED_VIT} with its classes.csv in {folder}: photos-tiny is distilled from it.")
    with open_arrays(weights) as file:
        state = {name: torch.from_numpy(file[name]) for name in file.files}
    with table.open(newline="") as lines:
        index = {row["wnid"]: int(row["class_index"]) for row in csv.DictReader(lines)}
    order = [index[wnid] for name in PHOTO_SETS for wnid in load_wnids(folder, name)]
    order += sorted(set(index.values()) - set(order))
    state["head.weight"], state["head.bias"] = state["head.weight"][order], state["head.bias"][order]
    teacher = ViT(VIT_TINY.with_classes(len(order)))
    teacher.load_state_dict(state)
    return teacher.eval().requires_grad_(False)
