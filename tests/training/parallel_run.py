"""One of the processes of ``test_parallel.py``: trains a pickled preset by a pickled recipe."""

import pickle
import sys
from pathlib import Path

import torch

from vit_demo.training import data as data_module
from vit_demo.training import recipes
from vit_demo.training.run import train_preset

if __name__ == "__main__":
    torch.set_num_threads(1)
    settings, data, out = (Path(argument) for argument in sys.argv[1:])
    preset, recipe, data_module.VALIDATION_DIGITS = pickle.loads(settings.read_bytes())
    recipes.RECIPES[preset.name] = recipe
    train_preset(preset, data, out, device=torch.device("cpu"))
