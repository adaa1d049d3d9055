"""Training objectives: cross-entropy, and two kinds of distillation from a teacher that is evaluated on every batch.

An objective turns labels into targets, and computes the loss of a network on the batch made from them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT
from vit_demo.training.batches import Batch
from vit_demo.training.pretrained_teacher import PretrainedTeacher
from vit_demo.training.student import Student, resample_patch_features

UNLABELLED_SCALE = 2.0
"""Factor on the probability that a teacher gives to the student's classes, for photos without a label; at most 1.

The teacher divides a cat's probability between several breeds, only one of which is among the student's classes.
"""


class CrossEntropy:
    """Cross-entropy with the labels; the target of an image without a label is the uniform distribution.

    Args:
        num_classes: Number of classes.
        label_smoothing: In [0, 1].
    """

    def __init__(self, num_classes: int, label_smoothing: float = 0.0) -> None:
        self.num_classes, self.label_smoothing = num_classes, label_smoothing

    def targets(self, labels: Tensor) -> Tensor:
        """The targets of images with labels ``[B]``: probabilities ``[B, num_classes]``."""
        one_hot = F.one_hot(labels.clamp(min=0), self.num_classes).float()
        return torch.where(labels[:, None] < 0, 1 / self.num_classes, one_hot)

    def wrap(self, network: nn.Module) -> nn.Module:
        """The module to train: the network, with further outputs if the objective needs them."""
        return network

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss, a scalar, and the logits ``[B, num_classes]`` of a batch."""
        logits = model(batch.images, **batch.patch_options).float()
        return self._cross_entropy(logits, batch.targets), logits

    def _cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits, targets, label_smoothing=self.label_smoothing)


class Distillation(CrossEntropy):
    """Distillation from a teacher of the same classes (Hinton et al., 2015, https://arxiv.org/abs/1503.02531).

    Images without a label keep the uniform distribution as their target.

    Args:
        num_classes: Number of classes.
        teacher: Called as ``teacher(images, patch_size=...)``; returns logits of the same classes.
        weight: Weight of the teacher's probabilities in the targets, in [0, 1].
        label_smoothing: In [0, 1].
    """

    def __init__(self, num_classes: int, teacher: nn.Module, weight: float, label_smoothing: float = 0.0) -> None:
        super().__init__(num_classes, label_smoothing)
        self.teacher, self.weight = teacher.eval(), weight

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """As in ``CrossEntropy``."""
        logits = model(batch.images, **batch.patch_options).float()
        with torch.no_grad():
            probabilities = self.teacher(batch.images, patch_size=batch.patch_size).float().softmax(1)
        blended = batch.targets + self.weight * (probabilities - batch.targets)
        targets = torch.where(batch.labels[:, None] < 0, batch.targets, blended)
        return self._cross_entropy(logits, targets), logits


class FeatureDistillation(CrossEntropy):
    """Distillation from a pretrained teacher whose features, of the image and of each patch, the student predicts too.

    Teacher and student see the same images, augmented and mixed alike (Beyer et al., 2021,
    https://arxiv.org/abs/2106.05237). The teacher alone decides the target of an image without a label.

    Args:
        num_classes: Number of classes.
        teacher: Evaluated on every batch.
        weight: Weight of the teacher's probabilities in the targets, in [0, 1]; the rest is the label's.
        feature_weight: Weight of the mean squared error of the image features.
        patch_weight: Weight of the mean squared error of the patch features.
    """

    def __init__(
        self, num_classes: int, teacher: PretrainedTeacher, weight: float, *, feature_weight: float, patch_weight: float
    ) -> None:
        super().__init__(num_classes)
        self.teacher, self.weight = teacher, weight
        self.feature_weight, self.patch_weight = feature_weight, patch_weight

    def targets(self, labels: Tensor) -> Tensor:
        """One-hot rows ``[B, num_classes + 2]``: the classes, no label (``UNLABELLED``), no class (``OUTLIER``).

        Once images are mixed, a row says how much of each kind is in the image.
        """
        return F.one_hot(labels % (self.num_classes + 2), self.num_classes + 2).float()  # -2 and -1 come last

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network as a ``Student``, with maps to the width of the teacher's features."""
        assert isinstance(network, ViT)
        return Student(network, self.teacher.width)

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """As in ``CrossEntropy``, for a ``Student``."""
        outputs = self.teacher(batch.teacher_images)
        logits, features, patch_features = model(batch.images, **batch.patch_options)
        logits = logits.float()
        height, width = batch.images.shape[2:]
        grid = (height // batch.patch_size, width // batch.patch_size)
        patch_targets = resample_patch_features(outputs.patches, grid, batch.kept_patches)
        loss = self._cross_entropy(logits, self.blend(batch.targets, outputs.logits))
        loss = loss + self.feature_weight * F.mse_loss(features.float(), outputs.features)
        loss = loss + self.patch_weight * F.mse_loss(patch_features.float(), patch_targets)
        return loss, logits

    def blend(self, targets: Tensor, logits: Tensor) -> Tensor:
        """The probabilities to learn, ``[B, num_classes]``.

        Photos with a label are known to show one of the classes, and outliers none of them: their target is uniform.
        For photos without a label, the teacher's probability of all other classes is spread evenly.

        Args:
            targets: ``[B, num_classes + 2]``, mixed.
            logits: The teacher's, ``[B, its classes]``; the first are those of the student.
        """
        labelled, unlabelled, outlier = targets.split([self.num_classes, 1, 1], dim=1)
        known = logits.softmax(1)[:, : self.num_classes].sum(1, keepdim=True)
        share = labelled.sum(1, keepdim=True) + unlabelled * (UNLABELLED_SCALE * known).clamp(max=1)  # [B, 1]
        soft = share * logits[:, : self.num_classes].softmax(1) + (1 - share) / self.num_classes
        hard = labelled + unlabelled * soft + outlier / self.num_classes
        return torch.lerp(hard, soft, self.weight)
