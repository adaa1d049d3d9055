"""The outputs of a pretrained teacher for a few random crops of every training photo, computed once and stored.

The teacher costs far more than its student, so it is not run in every epoch: the student is trained on the same few
crops of each photo, which only flips, small shifts and colour changes vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from vit_demo.model import Trace, ViT
from vit_demo.model.vit import Block
from vit_demo.training.augment import crop_and_resize, flip_crops, jitter_crops, random_crops
from vit_demo.training.data import UNLABELLED, ImageDataset

TEACHER_SIDE = 160
"""Side of the teacher's input in pixels: that of the stored photos, which gives half the tokens of 224 pixels."""

UNLABELLED_SCALE = 2.0
"""Factor on the probability that the teacher gives to the student's classes, for photos without a label; at most 1.

The teacher divides a cat's probability between several breeds, only one of which is among the student's classes.
"""

TENSORS = ("crops", "probabilities", "features", "patches")


class TeacherSample(NamedTuple):
    """The teacher's outputs for a batch, in float32.

    Attributes:
        crops: ``[B, 4]``; of negative width where flipped.
        probabilities: ``[B, classes]``.
        features: ``[B, D]``.
        patches: ``[B, D, rows, cols]``.
    """

    crops: Tensor
    probabilities: Tensor
    features: Tensor
    patches: Tensor


@dataclass(frozen=True)
class TeacherOutputs:
    """A teacher's outputs for some crops (views) of every training image, one tensor for each view.

    The tensors of stored outputs are mapped from their files, so that only the view in use takes memory.

    Attributes:
        crops: ``[N, 4]`` each, as ``random_crops`` returns them.
        probabilities: ``[N, classes]``; each row sums to 1.
        features: ``[N, D]``: the input of the teacher's head.
        patches: ``[N, D, rows, cols]``: the normalised patch tokens that enter the teacher's last block, averaged over
            2 x 2 patches.
        scales: Mean and standard deviation of ``features``, ``[D]``, and of ``patches``, ``[D, 1, 1]``, in the first
            view; samples of all views are standardised with them.
    """

    crops: Sequence[Tensor]
    probabilities: Sequence[Tensor]
    features: Sequence[Tensor]
    patches: Sequence[Tensor]
    scales: dict[str, tuple[Tensor, Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        scales = {}
        for name, dims in {"features": (0,), "patches": (0, 2, 3)}.items():
            deviation, mean = torch.std_mean(getattr(self, name)[0].float(), dim=dims, keepdim=True)
            scales[name] = (mean[0], deviation[0])
        object.__setattr__(self, "scales", scales)

    def sample(self, epoch: int, indices: Tensor) -> TeacherSample:
        """The outputs for the images at ``indices`` ``[B]``, one view per epoch in turn.

        Half of the images are flipped at random, and the crops are jittered slightly, which the outputs ignore.
        """
        view = epoch % len(self.crops)
        crops, probabilities = self.crops[view][indices], self.probabilities[view][indices].float()
        features, patches = (self.standardised(name, view, indices) for name in ("features", "patches"))
        flipped = torch.rand(len(indices)) < 0.5
        patches = torch.where(flipped[:, None, None, None], patches.flip(3), patches)
        return TeacherSample(jitter_crops(flip_crops(crops, flipped)), probabilities, features, patches)

    def standardised(self, name: str, view: int, indices: Tensor) -> Tensor:
        """Features or patches of one view with mean 0 and standard deviation 1, float32."""
        mean, deviation = self.scales[name]
        return (getattr(self, name)[view][indices].float() - mean) / deviation


def compute_teacher_outputs(
    teacher: ViT,
    datasets: list[ImageDataset],
    views: int,
    seed: int,
    folder: Path,
    device: torch.device,
    *,
    batch_size: int = 64,
) -> TeacherOutputs:
    """Runs the teacher on ``views`` random crops of every image, or reads its outputs from ``folder``.

    Args:
        teacher: Takes photos of ``TEACHER_SIDE`` pixels in [-1, 1]; its first classes are those of the first dataset.
        datasets: The training photos. The outputs for each dataset are stored in files of their own, so that a change
            of one dataset leaves those of the others valid.
        views: Crops per photo.
        seed: Seed of the crops.
        folder: Where outputs are stored, one file for each view of each dataset.
        device: Where the teacher runs.
        batch_size: Photos per forward pass.

    Returns:
        The outputs for all datasets, in their order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    teacher, classes = teacher.to(device), len(datasets[0].classes)
    outputs: list[dict[str, Tensor]] = []
    for view in range(views):
        description = f"teacher, view {view + 1} of {views}"
        parts = []
        for data in datasets:
            # The name identifies photos and crops, so outputs for others are never used.
            path = folder / f"{data.digest}-{seed}-{view}.safetensors"
            stored = load_file(path) if path.exists() else {}
            if stored.keys() != set(TENSORS):
                crops = random_crops(len(data), torch.Generator().manual_seed(seed * 1009 + view), data.aspect_ratios)
                stored = _run_teacher(teacher, data, crops, classes, device, batch_size, description)
                partial = path.with_suffix(".partial")
                save_file(stored, partial)
                partial.replace(path)
                stored = load_file(path)
            parts.append(stored)
        outputs.append(parts[0] if len(parts) == 1 else {n: torch.cat([part[n] for part in parts]) for n in TENSORS})
    return TeacherOutputs(*([stored[name] for stored in outputs] for name in TENSORS))


def _run_teacher(
    teacher: ViT,
    data: ImageDataset,
    crops: Tensor,
    classes: int,
    device: torch.device,
    batch_size: int,
    description: str,
) -> dict[str, Tensor]:
    """The outputs for one crop of every image, by name, all but the crops in half precision."""
    batches = torch.arange(len(data)).split(batch_size)
    results = [
        _forward_teacher(teacher, data.images[batch].to(device), crops[batch].to(device), data.labels[batch], classes)
        for batch in tqdm(batches, desc=description, leave=False)
    ]
    return dict(zip(TENSORS, (crops, *(torch.cat(parts) for parts in zip(*results, strict=True))), strict=True))


@torch.inference_mode()
def _forward_teacher(
    teacher: ViT, images: Tensor, crops: Tensor, labels: Tensor, classes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities, image features and patch features for crops of uint8 ``[B, 3, side, side]``."""
    x = F.interpolate(crop_and_resize(images.float() / 255, crops), size=TEACHER_SIDE, mode="bicubic", antialias=True)
    trace = Trace(record_tokens=True)
    with torch.autocast(images.device.type, torch.bfloat16, enabled=images.device.type != "mps"):
        features = teacher.forward_head(teacher.forward_features(x.clamp(0, 1) * 2 - 1, trace), pre_logits=True)
        logits = teacher.head(features)
        # The patch tokens after the last block never reach the loss in pretraining, so those before it are used.
        tokens = cast(Block, teacher.blocks[-1]).norm1(trace.tokens[-2])[
            :, trace.num_prefix_tokens :
        ]  # [B, rows * cols, D]
    patches = F.avg_pool2d(tokens.float().mT.unflatten(2, trace.grid), 2).contiguous()  # [B, D, rows / 2, cols / 2]
    probabilities = restrict_to_classes(logits.float().cpu(), labels, classes)
    return probabilities.half(), features.half().cpu(), patches.half().cpu()


def restrict_to_classes(logits: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Turns a teacher's logits into probabilities of the first of its classes.

    Photos with a label are known to show one of the classes. For photos without one, the probability of all other
    classes is spread evenly; for outliers, everything is.

    Args:
        logits: ``[B, teacher's classes]``.
        labels: int64 ``[B]``.
        classes: Number of classes to keep.

    Returns:
        Probabilities ``[B, classes]``.
    """
    conditional = logits[:, :classes].softmax(1)
    mass = logits.softmax(1)[:, :classes].sum(1)  # [B]
    scaled = (UNLABELLED_SCALE * mass).clamp(max=1)
    weight = torch.where(labels == UNLABELLED, scaled, (labels >= 0).float())[:, None]
    return weight * conditional + (1 - weight) / classes
