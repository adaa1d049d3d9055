"""What a pretrained ViT makes of the training photos, asked once for a few crops of each and kept.

The teacher costs far more than its student. So each photo gets a handful of crops, the teacher answers them once, and
the student meets the same crops again, mirrored and in another light.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from vit_demo.model import Trace, ViT
from vit_demo.model.config import VIT_TINY
from vit_demo.model.vit import Block
from vit_demo.training.augment import cut, draw_crops, mirror
from vit_demo.training.data import UNLABELLED, Labelled, find_file
from vit_demo.training.photos import PHOTO_SETS, wnids

TEACHER = "vit_ti16_224.npz"
"""A ViT-Ti/16 for 224 pixels and the 1,000 classes of ImageNet, tensors under timm's names, pixels in [-1, 1]."""

SIDE = 160
"""Pixels that the teacher sees: as many as the training photos have, and half the tokens that it has at 224."""

SHARE = 2.0
"""Of photos without labels: how much of the answer the classes get, over what the teacher gives them of its thousand.

It shares a cat out between several kinds of cat of which one is a class. More than all they never get.
"""

KEPT = ("crops", "probabilities", "features", "patches")


@dataclass(frozen=True)
class Answers:
    """A teacher's opinion of some crops of every training image.

    Attributes:
        crops: ``[views, N, 4]``, as ``draw_crops`` makes them.
        probabilities: ``[views, N, classes]``, each row summing to 1.
        features: ``[views, N, width]``, what the teacher's head reads; each number has mean 0 and deviation 1.
        patches: ``[views, N, width, rows, cols]``, what its last block reads of the patches, alike; one place for 2 x 2
            patches.
    """

    crops: Tensor
    probabilities: Tensor
    features: Tensor
    patches: Tensor

    def of(self, view: int, batch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The answers about a batch, the views taking turns, half of the images mirrored at random.

        Returns:
            Crops ``[B, 4]``, of a negative width where mirrored; in float32 probabilities ``[B, classes]``, features
            ``[B, width]`` and patches ``[B, width, rows, cols]``.
        """
        view %= len(self.crops)
        crops, patches = self.crops[view][batch], self.patches[view][batch].float()
        mirrored = torch.rand(len(batch)) < 0.5
        patches = torch.where(mirrored[:, None, None, None], patches.flip(3), patches)
        said = self.probabilities[view][batch].float(), self.features[view][batch].float()
        return mirror(crops, mirrored), *said, patches


def load_teacher(folder: Path) -> ViT:
    """The pretrained ViT-Ti/16, the classes of ``PHOTO_SETS`` first, in their order, and then its others.

    Args:
        folder: Holds the weights and their ``classes.csv``, here or in a folder ``vit_ti16_imagenet1k``; and the photo
            sets.

    Raises:
        FileNotFoundError: If one of the files is missing.
    """
    weights, table = (find_file(folder, name, "vit_ti16_imagenet1k") for name in (TEACHER, "classes.csv"))
    if weights is None or table is None:
        raise FileNotFoundError(f"No {TEACHER} with its classes.csv in {folder}: photos-tiny learns from that network.")
    with np.load(weights) as file:
        state = {name: torch.from_numpy(file[name]) for name in file.files}
    with table.open(newline="") as lines:
        index = {row["wnid"]: int(row["class_index"]) for row in csv.DictReader(lines)}
    wanted = [index[wnid] for name in PHOTO_SETS for wnid in wnids(folder, name)]
    wanted += sorted(set(index.values()) - set(wanted))
    state["head.weight"], state["head.bias"] = state["head.weight"][wanted], state["head.bias"][wanted]
    teacher = ViT(VIT_TINY.with_classes(len(wanted)))
    teacher.load_state_dict(state)
    return teacher.eval().requires_grad_(False)


def ask(
    teacher: ViT, data: Labelled, views: int, seed: int, folder: Path, device: torch.device, *, batch_size: int = 64
) -> Answers:
    """Asks about every image ``views`` times, each time about another crop; what ``folder`` has is not asked again.

    Args:
        teacher: Takes photos of ``SIDE`` pixels in [-1, 1]; its first classes are those of ``data``.
        data: The training photos.
        views: Crops of each photo.
        seed: Of the crops.
        folder: Where the answers are kept, a file a view.
        device: Where the teacher runs.
        batch_size: Photos a step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    teacher = teacher.to(device)
    kept: list[dict[str, Tensor]] = []
    classes = len(data.classes)
    for view in range(views):
        # The name says what was asked about: answers about other photos or crops are of no use.
        path = folder / f"{data.digest}-{seed}-{view}.safetensors"
        answers = load_file(path) if path.exists() else {}
        if answers.keys() != set(KEPT):  # an earlier version may have kept less
            generator = torch.Generator().manual_seed(seed * 1009 + view)
            drawn = draw_crops(len(data), generator, data.aspects)
            said = [
                _say(teacher, data.images[part].to(device), drawn[part].to(device), data.labels[part], classes)
                for part in tqdm(
                    torch.arange(len(data)).split(batch_size), desc=f"teacher, view {view + 1} of {views}", leave=False
                )
            ]
            answers = dict(zip(KEPT, (drawn, *(torch.cat(part) for part in zip(*said, strict=True))), strict=True))
            partial = path.with_suffix(".partial")
            save_file(answers, partial)
            partial.replace(path)
        kept.append(answers)
    for key, dims in {"features": (0,), "patches": (0, 2, 3)}.items():
        # The first view says for all of them where each number lies and how far it varies.
        deviation, mean = torch.std_mean(kept[0][key].float(), dim=dims, keepdim=True)
        for answers in kept:
            answers[key].sub_(mean[0]).div_(deviation[0])
    return Answers(*(torch.stack([answers.pop(key) for answers in kept]) for key in KEPT))


@torch.inference_mode()
def _say(teacher: ViT, images: Tensor, crops: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities, features and patches in half precision, of uint8 ``[B, 3, side, side]``."""
    x = F.interpolate(cut(images.float() / 255, crops), size=SIDE, mode="bicubic", antialias=True)
    trace = Trace(full=True)
    with torch.autocast(images.device.type, torch.bfloat16, enabled=images.device.type != "mps"):
        features = teacher.pool(teacher.encode(x.clamp(0, 1) * 2 - 1, trace))
        logits = teacher.head(features)
        # What the last block makes of the patches is read by nobody, and nothing taught it: so what it is given.
        given = cast(Block, teacher.blocks[-1]).norm1(trace.x[-2])[:, trace.num_prefix :]  # [B, rows * cols, D]
    patches = F.avg_pool2d(given.float().mT.unflatten(2, trace.grid), 2).contiguous()  # [B, D, rows / 2, cols / 2]
    probabilities = among(logits.float().cpu(), labels, classes)
    return probabilities.half(), features.half().cpu(), patches.half().cpu()


def among(logits: Tensor, labels: Tensor, classes: int) -> Tensor:
    """What a teacher of more classes says about the first of them.

    Args:
        logits: ``[B, all]``.
        labels: ``[B]``. Photos with a label are shared out between the classes. Photos without one may show none of
            them: the less the teacher sees of them, the more evenly. So is what is known to show none.
        classes: How many are wanted.

    Returns:
        Probabilities ``[B, classes]``.
    """
    shown = logits[:, :classes].softmax(1)
    inside = logits.softmax(1)[:, :classes].sum(1)  # [B]
    share = torch.where(labels == UNLABELLED, (SHARE * inside).clamp(max=1), (labels >= 0).float())[:, None]
    return share * shown + (1 - share) / classes
