"""What labelled everyday photos and the pool of unlabelled ones bring to ``photos-tiny``, in short runs.

Every run starts from the same checkpoint and draws the same number of images with the same recipe; only the sets that
it draws from differ. Accuracy is that on photos held back from training, never on the test sets.

Example:
    $ python -m benchmarks.photo_data --data PATH --runs runs --start round-4.safetensors
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.accelerator import best_device
from vit_demo.training.loop import Trainer
from vit_demo.training.photos import PHOTO_POOL, PHOTO_SETS, REAL_PHOTOS, load_photo_set
from vit_demo.training.predictions import predict
from vit_demo.training.recipes import RECIPES
from vit_demo.training.run import evenly_spaced_subset, load_split, prepare_objective, training_dataset
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint

SETS = (*PHOTO_SETS, REAL_PHOTOS, PHOTO_POOL)
"""The order in which they are concatenated."""

LEFT_OUT = {
    "neither": (REAL_PHOTOS, PHOTO_POOL),
    "labelled everyday photos": (PHOTO_POOL,),
    "the pool": (REAL_PHOTOS,),
    "both": (),
}
"""By what a run has beside Tiny ImageNet and Imagenette, the sets that it draws nothing from."""


def main() -> None:
    """Prints a table of accuracies in per cent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the photo sets")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--start", type=Path, required=True, help="the checkpoint to start from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--patch-size", type=int, default=12)
    options = parser.parse_args()

    preset, recipe, device = PRESETS["photos-tiny"], RECIPES["photos-tiny"], best_device()
    data = training_dataset(load_split(preset, options.data, "train"), recipe, options.seed)
    monitored = evenly_spaced_subset(load_split(preset, options.data, "validation"), 1)
    objective, _ = prepare_objective(
        preset, recipe, data, monitored, options.data, options.runs, device=device, seed=options.seed
    )
    start, _ = load_checkpoint(options.start)
    held_back = {name: load_photo_set(options.data, name, "validation", preset.image_size) for name in SETS[:3]}
    tiny, nette = (held_back[name] for name in PHOTO_SETS)
    held_back[PHOTO_SETS[1]] = replace(nette, labels=nette.labels + len(tiny.classes))

    def accuracies(network: torch.nn.Module) -> str:
        found = (predict(network, photos, preset, options.patch_size).accuracy for photos in held_back.values())
        return " | ".join(f"{100 * accuracy:.1f}" for accuracy in found)

    assert data.sources is not None and data.repeat_factors is not None
    print(f"| {options.epochs} epochs with | {' | '.join(held_back)} |", "|---|---:|---:|---:|", sep="\n")
    print(f"| before | {accuracies(start)} |", flush=True)
    for title, names in LEFT_OUT.items():
        left_out = torch.isin(data.sources, torch.tensor([SETS.index(name) for name in names]))
        factors = data.repeat_factors.masked_fill(left_out, 0.0)
        factors = factors * (data.repeat_factors.sum() / factors.sum())  # as many images an epoch
        network = deepcopy(start).train().requires_grad_(True)
        trainer = Trainer(
            preset, preset.name, replace(data, repeat_factors=factors), options.runs / f"with {title}", device=device,
            seed=options.seed, epochs=options.epochs, network=network, objective=objective,
        )  # fmt: skip
        trainer.run()
        # Not the moving average of the weights, half of which would still be the start after so few steps.
        print(f"| {title} | {accuracies(network)} |", flush=True)


if __name__ == "__main__":
    main()
