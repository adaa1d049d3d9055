"""Training objectives: cross-entropy, and distillation from a teacher that runs along or whose outputs were stored.

An objective provides the targets of some images, and computes the loss of a network on the batch made from them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT
from vit_demo.training.batches import Batch, Targets
from vit_demo.training.student import Student
from vit_demo.training.teacher_outputs import TeacherOutputs


class CrossEntropy:
    """Cross-entropy with the labels; the target of an image without a label is the uniform distribution.

    Args:
        num_classes: Number of classes.
        label_smoothing: In [0, 1].
    """

    def __init__(self, num_classes: int, label_smoothing: float = 0.0) -> None:
        self.num_classes, self.label_smoothing = num_classes, label_smoothing

    def targets(self, labels: Tensor, indices: Tensor, epoch: int) -> Targets:
        """The targets of the images at ``indices`` ``[B]`` of the training set, with labels ``[B]``, in an epoch."""
        return Targets(torch.where(labels[:, None] < 0, 1 / self.num_classes, self._one_hot(labels)))

    def wrap(self, network: nn.Module) -> nn.Module:
        """The module to train: the network, with further outputs if the objective needs them."""
        return network

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss, a scalar, and the logits ``[B, num_classes]`` of a batch."""
        logits = model(batch.images, **batch.patch_options).float()
        return self._cross_entropy(logits, batch.targets), logits

    def _one_hot(self, labels: Tensor) -> Tensor:
        """``[B, num_classes]``; rows of images without a label are meaningless."""
        return F.one_hot(labels.clamp(min=0), self.num_classes).float()

    def _cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits, targets, label_smoothing=self.label_smoothing)


class OnlineDistillation(CrossEntropy):
    """Distillation from a teacher that is evaluated on every batch (Hinton et al., 2015).

    See https://arxiv.org/abs/1503.02531. Images without a label keep the uniform distribution as their target.

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


class StoredDistillation(CrossEntropy):
    """Distillation from a teacher's stored outputs for certain crops, on which the student is trained as well.

    After Beyer et al., 2021, https://arxiv.org/abs/2106.05237. The target of an image without a label is the teacher's
    output alone.

    Args:
        num_classes: Number of classes.
        outputs: The teacher's outputs for the training set.
        weight: Weight of the teacher's probabilities in the targets, in [0, 1].
        label_smoothing: In [0, 1].
    """

    def __init__(self, num_classes: int, outputs: TeacherOutputs, weight: float, label_smoothing: float = 0.0) -> None:
        super().__init__(num_classes, label_smoothing)
        self.outputs, self.weight = outputs, weight

    def targets(self, labels: Tensor, indices: Tensor, epoch: int) -> Targets:
        """As in ``CrossEntropy``, with the crops that the teacher was given, slightly jittered."""
        sample = self.outputs.sample(epoch, indices)
        return Targets(self._blend(labels, sample.probabilities), sample.crops)

    def _blend(self, labels: Tensor, probabilities: Tensor) -> Tensor:
        """The labels, or without a label the teacher's probabilities, blended with the latter: ``[B, num_classes]``."""
        targets = torch.where(labels[:, None] < 0, probabilities, self._one_hot(labels))
        return targets + self.weight * (probabilities - targets)


class FeatureDistillation(StoredDistillation):
    """Stored distillation in which the student also predicts the teacher's features, of the image and of each patch.

    Args:
        num_classes: Number of classes.
        outputs: The teacher's outputs for the training set.
        weight: Weight of the teacher's probabilities in the targets, in [0, 1].
        label_smoothing: In [0, 1].
        feature_weight: Weight of the mean squared error of the image features.
        patch_weight: Weight of the mean squared error of the patch features.
    """

    def __init__(
        self,
        num_classes: int,
        outputs: TeacherOutputs,
        weight: float,
        label_smoothing: float = 0.0,
        *,
        feature_weight: float,
        patch_weight: float,
    ) -> None:
        super().__init__(num_classes, outputs, weight, label_smoothing)
        self.feature_weight, self.patch_weight = feature_weight, patch_weight

    def targets(self, labels: Tensor, indices: Tensor, epoch: int) -> Targets:
        """As in ``StoredDistillation``, with the teacher's features."""
        sample = self.outputs.sample(epoch, indices)
        vectors = torch.cat([self._blend(labels, sample.probabilities), sample.features], dim=1)
        return Targets(vectors, sample.crops, sample.patches)

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network as a ``Student``, with maps to the widths of the teacher's features."""
        assert isinstance(network, ViT)
        return Student(network, self.outputs.features[0].shape[1], self.outputs.patches[0].shape[1])

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """As in ``CrossEntropy``, for a ``Student``."""
        logits, features, patch_features = model(batch.images, **batch.patch_options)
        logits = logits.float()
        targets, feature_targets = batch.targets.tensor_split([self.num_classes], dim=1)
        loss = self._cross_entropy(logits, targets)
        loss = loss + self.feature_weight * F.mse_loss(features.float(), feature_targets)
        assert batch.patch_targets is not None
        loss = loss + self.patch_weight * F.mse_loss(patch_features.float(), batch.patch_targets)
        return loss, logits
