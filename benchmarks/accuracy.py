"""Accuracy of a pretrained ViT at other patch sizes, and of the MNIST notebook's network."""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform
from timm.models.vision_transformer import checkpoint_filter_fn
from torch import Tensor, nn
from tqdm import tqdm

from recipes.digits import load_digits
from recipes.predictions import predict
from recipes.recipes import RECIPES
from recipes.trainer import Trainer
from vit_demo.images import preprocess, read_image
from vit_demo.model import ViT
from vit_demo.model.config import VIT_TINY
from vit_demo.weights import find_preset

IMAGE_SIZE, CROP, HALF = 224, 0.9, (0.5, 0.5, 0.5)
"""As published with the pretrained ViT-Ti/16."""


@torch.inference_mode()
def patch_sizes() -> None:
    """A pretrained ViT-Ti/16 at resampled patch sizes, compared with timm's.

    Needs a folder that holds ``vit_ti16_imagenet1k/vit_ti16_224.npz`` (timm's names) and ``imagenet_samples``: a folder
    ``images`` and ``index.csv`` with the columns ``class_index`` and ``file``.
    """
    parser = argparse.ArgumentParser(description="Accuracy of a pretrained ViT-Ti/16 at resampled patch sizes.")
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds weights and photos")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 12, 14, 16, 20, 24, 28, 32, 48], help="in pixels")
    parser.add_argument("--count", type=int, default=1000, help="photos, at most 1,000 (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with np.load(options.data / "vit_ti16_imagenet1k" / "vit_ti16_224.npz") as file:
        tensors = {name: torch.from_numpy(file[name]) for name in file.files}
    ours = ViT(VIT_TINY).eval()
    ours.load_state_dict(tensors)
    theirs = {size: timms_network(tensors, size) for size in options.sizes}
    ours_right, theirs_right, same = (Counter[int]() for _ in range(3))
    for images, their_images, labels in photos(options.data, options.count):
        for size in options.sizes:
            edge = IMAGE_SIZE // size * size
            found = ours(images[:, :, :edge, :edge], patch_size=size).argmax(1)
            expected = theirs[size](their_images).argmax(1)  # timm cuts the edge itself
            ours_right[size] += int((found == labels).sum())
            theirs_right[size] += int((expected == labels).sum())
            same[size] += int((found == expected).sum())
    print(f"torch {torch.__version__}, timm {timm.__version__}, float32\n")
    print("| patch | pixels seen | tokens | vit_demo, % | timm, % | same prediction, % |", "|---:" * 6 + "|", sep="\n")
    for size in options.sizes:
        shares = (f"{100 * counts[size] / options.count:.1f}" for counts in (ours_right, theirs_right, same))
        side = IMAGE_SIZE // size
        print(f"| {size} | {side * size} | {side**2 + 1} | {' | '.join(shares)} |")


def timms_network(tensors: dict[str, Tensor], patch_size: int) -> nn.Module:
    """The network of timm, resampled by timm."""
    model = timm.create_model("vit_tiny_patch16_224", patch_size=patch_size)
    model.load_state_dict(checkpoint_filter_fn(tensors, model, interpolation="bicubic", antialias=True))
    return model.eval()


def photos(folder: Path, count: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of photos, preprocessed by this package and by timm, ``[B, 3, 224, 224]`` each, and their classes."""
    with (folder / "imagenet_samples" / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[:count]
    theirs = create_transform(IMAGE_SIZE, interpolation="bicubic", mean=HALF, std=HALF, crop_pct=CROP)
    options = {"image_size": IMAGE_SIZE, "patch_size": 16, "mean": HALF, "std": HALF, "crop_fraction": CROP}
    for start in tqdm(range(0, len(rows), 32), unit="batch"):
        some = rows[start : start + 32]
        paths = [folder / "imagenet_samples" / "images" / row["file"] for row in some]
        yield (
            torch.cat([preprocess(read_image(path), **options)[0] for path in paths]),
            torch.stack([theirs(Image.open(path).convert("RGB")) for path in paths]),
            torch.tensor([int(row["class_index"]) for row in some]),
        )


class SoftmaxTwice(nn.Module):
    """Answers with probabilities where logits are expected, as the notebook's network does."""

    def __init__(self, vit: ViT) -> None:
        super().__init__()
        self.vit = vit

    def forward(self, images: Tensor, *, patch_size: int) -> Tensor:
        """Probabilities ``[B, 10]``."""
        return self.vit(images, patch_size=patch_size).softmax(1)


def notebook() -> None:
    """Trains the notebook's network with its mistake, without it, and longer, and prints the accuracy of each."""
    parser = argparse.ArgumentParser(description="The MNIST notebook's network on the test digits.")
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds mnist.npz")
    parser.add_argument("--epochs", type=int, default=30, help="of the longer training (%(default)s)")
    options = parser.parse_args()
    preset = find_preset("digits-notebook")
    training, test = load_digits(options.data, "train"), load_digits(options.data, "test")
    found: dict[str, list[float]] = {}
    for patch_size in preset.patch_sizes:
        recipe = RECIPES[preset.checkpoint_name(patch_size)]
        longer = replace(
            recipe, epochs=options.epochs, optimiser="adamw", learning_rate=1e-2, constant_rate=False, ema_decay=0.999
        )
        for label, used in (
            ("as published: softmax, then cross-entropy", recipe),
            ("corrected: cross-entropy of logits", recipe),
            (f"corrected, {options.epochs} epochs of AdamW", longer),
        ):
            torch.manual_seed(0)
            network: nn.Module = ViT(preset.config_at(patch_size))
            network = SoftmaxTwice(network) if "softmax" in label else network
            with tempfile.TemporaryDirectory() as folder:
                state = Path(folder) / "notebook.state.pt"
                trainer = Trainer(preset, used, network, training, state, device=torch.device("cpu"))
                trainer.run()
            found.setdefault(label, []).append(predict(trainer.trained_network, test, preset, patch_size).accuracy)
    print(f"{'per cent of the 10,000 test digits':44}" + "".join(f"patch {p:<4}" for p in preset.patch_sizes))
    for label, accuracies in found.items():
        print(f"{label:44}" + "".join(f"{100 * a:8.2f}  " for a in accuracies))
