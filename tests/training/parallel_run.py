"""Trains a tiny network for ``test_parallel.py``, alone or as one of several processes."""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.model import ViTConfig
from vit_demo.training import recipes
from vit_demo.training.recipes import Recipe
from vit_demo.training.run import train_preset
from vit_demo.weights import PRESETS

if __name__ == "__main__":
    torch.set_num_threads(1)
    data, out = (Path(argument) for argument in sys.argv[1:])
    recipes.RECIPES["digits-tiny"] = Recipe(
        patch_weights={7: 0.5, 14: 0.5}, keep={7: 0.75}, epochs=3, batch_size=32, precision="fp32", ema=0.9
    )
    config = ViTConfig(
        image_size=28, patch_size=14, position_grid=4, in_channels=1, num_classes=10, embed_dim=16, depth=2, num_heads=2
    )
    preset = replace(PRESETS["digits-tiny"], config=config, patch_sizes=(7, 14), default_patch_size=7)
    train_preset(preset, data, out, device=torch.device("cpu"))
