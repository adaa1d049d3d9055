import pickle
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.run import main as torchrun

from vit_demo.training import data as data_module
from vit_demo.training import recipes
from vit_demo.training.data import ImageDataset
from vit_demo.training.loop import Trainer
from vit_demo.training.run import train_preset
from vit_demo.weights import PRESETS

SCRIPT = Path(__file__).with_name("parallel_run.py")


@pytest.fixture
def signal_handlers():
    """Restores the signal handlers that torchrun replaces in its own process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_two_processes_give_the_weights_of_one(data, recipe, tmp_path, monkeypatch, signal_handlers):
    """The launcher and the single process run in this one, because importing torch takes longest."""
    preset, recipe = PRESETS["digits-tiny"], replace(recipe, augment=True, learning_rate=1e-3)
    monkeypatch.setitem(recipes.RECIPES, preset.name, recipe)
    (tmp_path / "settings").write_bytes(pickle.dumps((preset, recipe, data_module.VALIDATION_DIGITS)))
    train_preset(preset, data, tmp_path / "one", device=torch.device("cpu"))
    environment = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(SCRIPT.parents[2])}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    arguments = [str(SCRIPT), *(str(tmp_path / name) for name in ("settings", "", "two"))]
    torchrun(["--standalone", "--nproc-per-node", "2", *arguments])
    one, two = (load_file(tmp_path / kind / "digits-tiny.safetensors") for kind in ("one", "two"))
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name].float(), tensor.float(), atol=2e-3, rtol=2e-3)  # stored in half precision
    logs = [(tmp_path / kind / "digits-tiny.csv").read_text() for kind in ("one", "two")]
    assert logs[0].count("\n") == logs[1].count("\n") == 4, "one process writes the log"


def test_a_batch_that_cannot_be_shared_equally_is_refused(data, recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("vit_demo.training.loop.world_size", lambda: 3)
    with pytest.raises(ValueError, match="batch of 32 images cannot be shared equally by 3"):
        Trainer(None, "digits-tiny", None, tmp_path, device=torch.device("cpu"))


def test_a_dataset_smaller_than_a_batch_is_refused(recipe, tmp_path):
    few = ImageDataset(torch.zeros(31, 1, 28, 28, dtype=torch.uint8), torch.zeros(31).long(), tuple("0123456789"))
    with pytest.raises(ValueError, match="31 training images"):
        Trainer(PRESETS["digits-tiny"], "digits-tiny", few, tmp_path, device=torch.device("cpu"))
