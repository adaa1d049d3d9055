"""Accuracy of a pretrained ViT-Ti/16 at resampled patch sizes, compared with timm's.

Needs a folder that holds ``vit_ti16_imagenet1k/vit_ti16_224.npz`` (timm's names) and ``imagenet_samples``: a folder
``images`` and ``index.csv`` with the columns ``class_index`` and ``file``.

Example:
    $ python -m benchmarks.patch_sizes --data PATH
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform
from timm.models.vision_transformer import checkpoint_filter_fn
from torch import Tensor, nn
from tqdm import tqdm

from vit_demo.images import preprocess, read_image
from vit_demo.trace import TracedViT
from vit_demo.weights.convert import ConfigHints, convert

IMAGE_SIZE = 224
SIZES = (8, 12, 14, 16, 20, 24, 28, 32, 48)
HALF = (0.5, 0.5, 0.5)
BATCH = 32


@dataclass
class Line:
    """Accuracy at one patch size, this package's and timm's, and how often both predict the same class."""

    patch_size: int
    ours: int = 0
    timms: int = 0
    same: int = 0

    @property
    def seen(self) -> int:
        """Pixels along a side that whole patches cover; the rest, at the right and bottom, is cut."""
        return IMAGE_SIZE // self.patch_size * self.patch_size


def weights(folder: Path) -> dict[str, Tensor]:
    """The stored tensors, under timm's names."""
    stored = np.load(folder / "vit_ti16_imagenet1k" / "vit_ti16_224.npz")
    return {name: torch.from_numpy(stored[name]) for name in stored.files}


def our_network(tensors: dict[str, Tensor]) -> TracedViT:
    """This package's network, converted like every checkpoint of the Hub; it resamples itself."""
    config, converted = convert(tensors, ConfigHints(num_heads=3, image_size=IMAGE_SIZE))
    model = ViT(config)
    model.load_state_dict(converted)
    return model.eval().requires_grad_(False)


def timms_network(tensors: dict[str, Tensor], patch_size: int) -> nn.Module:
    """timm's, resampled by timm."""
    model = timm.create_model("vit_tiny_patch16_224", patch_size=patch_size)
    model.load_state_dict(checkpoint_filter_fn(tensors, model, interpolation="bicubic", antialias=True))
    return model.eval().requires_grad_(False)


def photos(folder: Path, count: int, crop: float) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of photos, preprocessed by this package and by timm, ``[B, 3, 224, 224]`` each, and their classes."""
    with (folder / "imagenet_samples" / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[:count]
    theirs = create_transform(IMAGE_SIZE, interpolation="bicubic", mean=HALF, std=HALF, crop_pct=crop)
    options = {"image_size": IMAGE_SIZE, "patch_size": 16, "mean": HALF, "std": HALF, "crop_fraction": crop}
    for start in tqdm(range(0, len(rows), BATCH), unit="batch"):
        some = rows[start : start + BATCH]
        paths = [folder / "imagenet_samples" / "images" / row["file"] for row in some]
        yield (
            torch.cat([preprocess(read_image(path), **options)[0] for path in paths]),
            torch.stack([theirs(Image.open(path).convert("RGB")) for path in paths]),
            torch.tensor([int(row["class_index"]) for row in some]),
        )


@torch.inference_mode()
def measure(folder: Path, sizes: list[int], count: int, crop: float) -> list[Line]:
    """Both networks on the first photos at each patch size."""
    tensors = weights(folder)
    ours = our_network(tensors)
    timms = {size: timms_network(tensors, size) for size in sizes}
    lines = [Line(size) for size in sizes]
    for images, their_images, labels in photos(folder, count, crop):
        for line in lines:
            edge = line.seen
            mine = ours(images[:, :, :edge, :edge], patch_size=line.patch_size).argmax(1)
            other = timms[line.patch_size](their_images).argmax(1)  # cuts the edge itself
            line.ours += int((mine == labels).sum())
            line.timms += int((other == labels).sum())
            line.same += int((mine == other).sum())
    return lines


def table(lines: list[Line], count: int) -> str:
    """The result as Markdown."""
    rows = [
        "| patch | pixels seen | tokens | vit_demo, % | timm, % | same prediction, % |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for one in lines:
        tokens = (one.seen // one.patch_size) ** 2 + 1
        shares = (f"{100 * found / count:.1f}" for found in (one.ours, one.timms, one.same))
        rows.append(f"| {one.patch_size} | {one.seen} | {tokens} | {' | '.join(shares)} |")
    return "\n".join(rows)


def main() -> None:
    """Reads the command line, measures, prints Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.patch_sizes", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds weights and photos")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="patch sizes in pixels")
    parser.add_argument("--count", type=int, default=1000, help="photos, at most 1,000 (%(default)s)")
    parser.add_argument("--crop", type=float, default=0.9, help="share of the shorter side (%(default)s, as published)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, timm {timm.__version__}, float32")
    lines = measure(arguments.data, arguments.sizes, arguments.count, arguments.crop)
    print(f"\n{table(lines, arguments.count)}")


if __name__ == "__main__":
    main()
