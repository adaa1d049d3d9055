"""Distillation (Hinton et al., 2015, https://arxiv.org/abs/1503.02531): the teachers, the targets and the loss.

Teacher and student see the same images, augmented and mixed alike (Beyer et al., 2021,
https://arxiv.org/abs/2106.05237).
"""

import csv
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from recipes.image_dataset import find_file, open_arrays
from recipes.photos import PHOTO_SETS, load_wnids
from vit_demo.errors import InputError
from vit_demo.model import ViT
from vit_demo.model.config import VIT_TINY

PRETRAINED_VIT = "vit_ti16_224.npz"
"""The weights of a ViT-Ti/16 trained on ImageNet's 1,000 classes at 224 pixels in [-1, 1], under timm's names."""

UNLABELLED_SCALE = 2.0
"""Factor on the probability that a teacher gives to the student's classes, for photos without a label; at most 1.

The teacher divides a cat's probability between several breeds, only one of which is among the student's classes.
"""


class ConvNet(nn.Module):
    """The digits' teacher: six 3 x 3 convolutions with batch normalisation, of 24, 48 and 96 channels.

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


def load_pretrained_vit(folder: Path) -> ViT:
    """The photos' teacher: a ViT-Ti/16 with its classes reordered, first those of ``PHOTO_SETS``, then all others.

    Weights and a table ``classes.csv`` with columns ``wnid`` and ``class_index`` stand in the data folder or in its
    subfolder ``vit_ti16_imagenet1k``.
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
    vit = ViT(replace(VIT_TINY, num_classes=len(order)))
    vit.load_state_dict(state)
    return vit


class Student(nn.Module):
    """A network with a second head for those classes of its teacher that it will not have itself; it is not exported.

    Without ``other_classes`` any network will do that is called as ``network(images, patch_size=...)``.
    """

    def __init__(self, network: nn.Module, other_classes: int = 0) -> None:
        super().__init__()
        self.network = network
        self.head: nn.Linear | None = None
        if other_classes:
            assert isinstance(network, ViT)
            self.head = nn.Linear(network.config.num_features, other_classes)

    def forward(self, images: Tensor, patch_size: int) -> Tensor:
        """Logits of the network's classes, then of the others, ``[B, classes + other_classes]``."""
        vit = self.network
        if self.head is None or not isinstance(vit, ViT):
            return vit(images, patch_size=patch_size)
        pooled = vit.forward_head(vit.forward_features(images, patch_size=patch_size), pre_logits=True)
        return torch.cat([vit.head(pooled), self.head(pooled)], dim=1)


def label_rows(labels: Tensor, num_classes: int) -> Tensor:
    """One-hot rows ``[B, num_classes + 2]``: the classes, no label (``UNLABELLED``), no class (``OUTLIER``).

    Once images are mixed, a row says how much of each kind is in the image.
    """
    return F.one_hot(labels % (num_classes + 2), num_classes + 2).float()  # -2 and -1 come last


def blend_targets(rows: Tensor, teacher_logits: Tensor | None, weight: float) -> Tensor:
    """The probabilities of a student's classes to learn, ``[B, classes]``.

    Images with a label are known to show one of the classes, and outliers none of them: their target is uniform. For
    images without a label, the teacher's probability of all other classes is spread evenly.

    Args:
        rows: ``[B, classes + 2]``, as ``label_rows`` returns them, mixed or not.
        teacher_logits: ``[B, the teacher's classes]``, the student's classes first; None for no teacher.
        weight: Of the teacher's probabilities, in [0, 1]; the rest is the label's.
    """
    classes = rows.shape[1] - 2
    labelled, unlabelled, outlier = rows.split([classes, 1, 1], dim=1)
    if teacher_logits is None:
        return labelled + (unlabelled + outlier) / classes
    mass = teacher_logits.softmax(1)[:, :classes].sum(1, keepdim=True)
    share = labelled.sum(1, keepdim=True) + unlabelled * (UNLABELLED_SCALE * mass).clamp(max=1)  # [B, 1]
    soft = share * teacher_logits[:, :classes].softmax(1) + (1 - share) / classes
    hard = labelled + unlabelled * soft + outlier / classes
    return torch.lerp(hard, soft, weight)


def student_loss(logits: Tensor, teacher_logits: Tensor | None, rows: Tensor, weight: float) -> Tensor:
    """Cross-entropy with ``blend_targets``, and with all of a teacher's probabilities if it has further classes."""
    classes = rows.shape[1] - 2
    loss = F.cross_entropy(logits[:, :classes], blend_targets(rows, teacher_logits, weight))
    if teacher_logits is not None and teacher_logits.shape[1] > classes:
        loss = loss + F.cross_entropy(logits, teacher_logits.softmax(1))
    return loss
