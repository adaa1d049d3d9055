"""What the MNIST notebook's 8-dimensional ViT reaches: with its mistake, without it, and with longer training.

The notebook hands probabilities to a cross-entropy that expects logits, so its softmax is applied twice. Run with

    python -m benchmarks.notebook --data PATH
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from vit_demo.trace import TracedViT
from vit_demo.training.data import load_digits
from vit_demo.training.loop import Trainer
from vit_demo.training.predictions import predict
from vit_demo.training.recipes import RECIPES, Recipe
from vit_demo.weights import find_preset

PRESET = find_preset("digits-notebook")


class SoftmaxTwice(nn.Module):
    """Answers with probabilities where logits are expected, as the notebook's network does."""

    def __init__(self, vit: TracedViT) -> None:
        super().__init__()
        self.vit = vit

    def forward(self, images: Tensor, *, patch_size: int) -> Tensor:
        """Probabilities ``[B, 10]``."""
        return self.vit(images, patch_size=patch_size).softmax(1)


def longer(recipe: Recipe, epochs: int) -> Recipe:
    """Our own way: AdamW, warm-up, cosine and a moving average; so small a network has no need of augmentation."""
    return replace(
        recipe, epochs=epochs, optimiser="adamw", learning_rate=1e-2, weight_decay=0.0, batch_size=128, ema_decay=0.999
    )


def main() -> None:
    """Trains the nine networks and prints their accuracy on the test digits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds mnist.npz")
    parser.add_argument("--epochs", type=int, default=30, help="of our own recipe (%(default)s)")
    options = parser.parse_args()
    training, test = load_digits(options.data, "train"), load_digits(options.data, "test")
    found: dict[str, list[float]] = {}
    for patch_size in PRESET.patch_sizes:
        name = PRESET.checkpoint_name(patch_size)
        recipe, config = RECIPES[name], PRESET.config_at(patch_size)
        torch.manual_seed(0)
        twice = SoftmaxTwice(ViT(config))
        for label, used, network in (
            ("as published: softmax, then cross-entropy", recipe, twice),
            ("mended: cross-entropy of logits", recipe, None),
            (f"mended, {options.epochs} epochs, our recipe", longer(recipe, options.epochs), None),
        ):
            RECIPES[name] = used
            with tempfile.TemporaryDirectory() as out:
                trainer = Trainer(PRESET, name, training, Path(out), device=torch.device("cpu"), network=network)
                trainer.run()
            accuracy = predict(trainer.trained_network, test, PRESET, patch_size).accuracy
            found.setdefault(label, []).append(accuracy)
        RECIPES[name] = recipe
    print(f"{'per cent of the 10,000 test digits':44}" + "".join(f"patch {p:<4}" for p in PRESET.patch_sizes))
    for label, accuracies in found.items():
        print(f"{label:44}" + "".join(f"{100 * a:8.2f}  " for a in accuracies))


if __name__ == "__main__":
    main()
