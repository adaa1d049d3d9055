"""The repository is a valid Hugging Face Space, and follows the rules of ZeroGPU."""

import contextlib
import os
import pickle
import runpy
import signal
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from .asynchronous import PATIENCE

ROOT = Path(__file__).parent.parent
SKETCH = Image.new("L", (64, 64), 255)
SKETCH.paste(0, (30, 10, 36, 54))


@pytest.fixture
def zero_gpu(monkeypatch):
    """Replaces the ``spaces`` package; like its fork, it passes arguments and results through pickle."""
    calls = []

    def gpu(duration):
        def decorate(function):
            def run_on_gpu(*arguments):
                calls.append(duration)
                return pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(arguments)))))

            return run_on_gpu

        return decorate

    monkeypatch.setitem(sys.modules, "spaces", types.SimpleNamespace(GPU=gpu))
    monkeypatch.setattr("vit_demo.accelerator.ZERO_GPU", True)
    monkeypatch.setattr("vit_demo.accelerator.ZERO_GPU_PARAMETERS", 0)
    monkeypatch.setattr("vit_demo.inference.forward.ZERO_GPU", True)
    return calls


def test_on_zero_gpu_a_small_network_stays_on_the_cpu_and_costs_no_quota(zero_gpu, monkeypatch):
    from vit_demo.service.engine import Engine

    monkeypatch.setattr("vit_demo.accelerator.ZERO_GPU_PARAMETERS", 10_000_000)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)  # as the `spaces` package does
    engine = Engine()
    assert engine.device.type == "cpu"
    result = engine.explore(SKETCH, "digits-tiny", patch_size=4)
    assert result.relevance().shape == (7, 7) and result.device.startswith("CPU") and not zero_gpu


def test_on_zero_gpu_only_the_pass_itself_runs_on_a_gpu(zero_gpu, monkeypatch):
    from vit_demo.service import engine
    from vit_demo.service.engine import Engine

    chosen = []
    monkeypatch.setattr(engine, "best_device", lambda **where: chosen.append(where) or torch.device("cpu"))
    on_gpu = Engine("cpu").explore(SKETCH, "digits-tiny", patch_size=4)
    assert zero_gpu and zero_gpu[0] <= 60 and chosen == [{"forked": True}]
    plain = Engine("cpu")
    plain._execute_on_zero_gpu = plain._execute
    expected = plain.explore(SKETCH, "digits-tiny", patch_size=4)
    np.testing.assert_array_equal(on_gpu.logits, expected.logits)
    np.testing.assert_array_equal(on_gpu.attention_maps(), expected.attention_maps())
    assert all(torch.equal(a, b) for a, b in zip(on_gpu.trace.q, expected.trace.q, strict=True))
    calls_before = len(zero_gpu)
    for compute in (
        lambda ex: ex.relevance("3"),
        lambda ex: ex.heatmap("local_surrogate", budget=8, progress=lambda *_: None),
        lambda ex: ex.faithfulness("rollout", steps=3, seeds=1).deletion,
        lambda ex: ex.drop_patches([(0, 0)]).rollout(),
    ):
        np.testing.assert_array_equal(compute(on_gpu), compute(expected))
    assert len(zero_gpu) == calls_before + 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, as ZeroGPU does")
def test_what_runs_in_the_fork_of_zero_gpu_takes_no_lock(zero_gpu):
    """ZeroGPU forks the server: a lock that another thread holds at that moment stays locked in the child forever."""
    from vit_demo.service.engine import Engine

    engine, forks = Engine("cpu"), []

    def forked(*arguments):
        locks = [engine._models._lock, engine._results._lock, engine._prepared._lock, engine.jobs._lock]
        held, forked_already = threading.Event(), threading.Event()

        def hold() -> None:
            with contextlib.ExitStack() as stack:
                for lock in locks:
                    stack.enter_context(lock)
                held.set()
                forked_already.wait(PATIENCE)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(PATIENCE)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(PATIENCE)  # a child that waits forever fails the test
            try:
                result = pickle.dumps(engine._execute(*arguments))
            except BaseException as error:
                result = pickle.dumps(repr(error))
            with os.fdopen(writer, "wb") as out:
                out.write(result)
            os._exit(0)
        os.close(writer)
        forked_already.set()
        thread.join()
        with os.fdopen(reader, "rb") as file:
            result = file.read()
        assert os.waitpid(child, 0)[1] == 0, "the child process hung"
        forks.append(child)
        return pickle.loads(result)

    engine._execute_on_zero_gpu = forked
    plain = Engine("cpu")
    plain._execute_on_zero_gpu = plain._execute
    on_gpu, expected = (one.explore(SKETCH, "digits-tiny", patch_size=7) for one in (engine, plain))
    np.testing.assert_array_equal(on_gpu.logits, expected.logits)
    for compute in (
        lambda ex: ex.relevance("3"),
        lambda ex: ex.heatmap("attnlrp", "3"),
        lambda ex: ex.heatmap("occlusion"),
        lambda ex: ex.drop_patches([(0, 0)]).rollout(),
        lambda ex: ex.faithfulness("rollout", steps=3, seeds=1).deletion,
        lambda ex: np.array(ex.randomization("rollout")),
    ):
        np.testing.assert_allclose(compute(on_gpu), compute(expected), atol=1e-6)
    assert len(forks) == 7


def test_spaces_is_imported_before_anything_that_initializes_cuda(monkeypatch):
    order = []

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name in ("spaces", "torch", "vit_demo", "gradio"):
                order.append(name)

    for name in ("spaces", "vit_demo", "vit_demo.web"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    runpy.run_path(str(ROOT / "app.py"), run_name="app")
    assert order[0] == "spaces"
