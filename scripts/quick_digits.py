"""Chooses the 6,000 digits of ``checkpoints/digits.npz`` from MNIST's training part.

    python -m scripts.quick_digits --data PATH

``PATH`` holds ``mnist.npz``, or torchvision downloads it there. 500 digits of each class for training, 100 for testing,
all of them written by the training part's 30,000 writers or so: MNIST's test part stays untouched.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from recipes.digits import load_digits
from vit_demo.training.small import DIGITS_FILE, NUM_TEST, NUM_TRAIN

SEED = 0


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of MNIST")
    data = load_digits(parser.parse_args().data, "train")
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(SEED))
    assert isinstance(data.images, torch.Tensor)
    labels = data.labels[order]
    by_class = [order[labels == label] for label in range(10)]
    train, test = NUM_TRAIN // 10, NUM_TEST // 10
    parts = [torch.cat([one[:train] for one in by_class]), torch.cat([one[train : train + test] for one in by_class])]
    shuffled = [part[torch.randperm(len(part), generator=torch.Generator().manual_seed(SEED + 1))] for part in parts]
    chosen = torch.cat(shuffled)
    images, classes = data.images[chosen, 0].numpy(), data.labels[chosen].numpy().astype(np.uint8)
    np.savez_compressed(DIGITS_FILE, images=images, labels=classes)
    print(f"{DIGITS_FILE}: {DIGITS_FILE.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
