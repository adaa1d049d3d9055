import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from vit_demo.training.loop import Trainer

SCRIPT = Path(__file__).with_name("parallel_run.py")


def run(processes, data, out):
    command = [sys.executable, str(SCRIPT), str(data), str(out)]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command[1:1] = launcher
    own = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(SCRIPT.parents[2])}
    subprocess.run(command, check=True, env=os.environ | own, timeout=240, capture_output=True)
    return load_file(out / "digits-tiny.safetensors")


def test_two_processes_make_the_weights_that_one_makes(data, recipe, tmp_path):
    one, two = run(1, data, tmp_path / "one"), run(2, data, tmp_path / "two")
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name].float(), tensor.float(), atol=2e-3, rtol=2e-3)  # stored in half precision
    log = [(tmp_path / kind / "digits-tiny.csv").read_text() for kind in ("one", "two")]
    assert log[0].count("\n") == log[1].count("\n") == 4, "one process writes the log"


def test_a_batch_that_cannot_be_shared_equally_is_refused(data, recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("vit_demo.training.loop.world_size", lambda: 3)
    with pytest.raises(ValueError, match="batch of 32 cannot be shared by 3"):
        Trainer(None, "digits-tiny", None, tmp_path, device=torch.device("cpu"))
