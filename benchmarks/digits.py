"""Accuracy of the digits preset on other pens, and on digits that are cropped to their ink."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from recipes.digits import DIGITS, load_digits
from recipes.image_dataset import ImageDataset, find_file, open_arrays
from recipes.predictions import predict
from vit_demo.errors import EmptyDrawingError
from vit_demo.images import to_mnist
from vit_demo.weights import find_preset
from vit_demo.weights.checkpoints import load_model

BEFORE = {
    "usps": 96.45, "semeion": 92.97, "pen": 98.97, "paint": 100.0, "MNIST": 99.5,
    "MNIST, margin 0": 98.81, "MNIST, margin 0, dark ink": 98.82,
    **{f"MNIST, margin {margin}{ink}": 99.47 for margin in (1, 2, 3) for ink in ("", ", dark ink")},
}  # fmt: skip
"""Per cent that was right on 2026-11-28, when a stroke from edge to edge could be taken for a bar or a line."""

Set = tuple[str, list[NDArray[np.uint8]], NDArray[np.int64]]


def main() -> None:
    """Prints how many digits of each set are right, beside what it was; a digit that is not seen is wrong."""
    parser = argparse.ArgumentParser(description="Other people's digits, and MNIST's test digits cropped to their ink.")
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder of mnist and digits_other")
    parser.add_argument("--count", type=int, default=10_000, help="of each set, at most (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    preset = find_preset("digits-small")
    model, size = load_model(preset).module, preset.default_patch_size
    print("| digits | | right before, % | right, % | not seen |", "|---|---:|---:|---:|---:|", sep="\n")
    for name, images, labels in sets(options.data):
        rows = np.linspace(0, len(images) - 1, min(options.count, len(images))).astype(int)
        made, is_seen = [], []
        for row in tqdm(rows, name, leave=False):
            try:
                made.append(to_mnist(images[row]))
            except EmptyDrawingError:
                made.append(np.zeros((28, 28), np.uint8))
            is_seen.append(bool(made[-1].any()))
        pixels = torch.from_numpy(np.stack(made))[:, None]
        found = predict(model, ImageDataset(pixels, torch.from_numpy(labels[rows]), DIGITS), preset, size)
        right = (found.correct & torch.tensor(is_seen)).float().mean()
        print(f"| {name} | {len(rows):,} | {BEFORE[name]:.2f} | {100 * right:.2f} | {is_seen.count(False)} |")


def sets(folder: Path) -> Iterator[Set]:
    """Names, pictures of any size, and labels."""
    path = find_file(folder, "digits_other.npz")
    assert path is not None, f"There is no digits_other.npz in {folder}."
    with open_arrays(path) as file:
        for name in (key.removesuffix("_images") for key in file.files if key.endswith("_images")):
            yield name, list(file[f"{name}_images"]), file[f"{name}_labels"].astype(np.int64)
    test = load_digits(folder, "test")
    digits, labels = test.images[:, 0].numpy(), test.labels.numpy()  # type: ignore[call-overload]
    yield "MNIST", list(digits), labels
    for margin in range(4):
        some = [cropped(digit, margin) for digit in digits]
        yield f"MNIST, margin {margin}", some, labels
        yield f"MNIST, margin {margin}, dark ink", [255 - digit for digit in some], labels


def cropped(digit: NDArray[np.uint8], margin: int) -> NDArray[np.uint8]:
    """A digit, white on black, cut out with so many pixels around its ink."""
    rows, cols = (np.flatnonzero((digit > 127).any(axis)) for axis in (1, 0))
    return np.pad(digit[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1], margin)
