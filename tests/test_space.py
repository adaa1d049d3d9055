"""The repository is a Hugging Face Space as it stands, and ZeroGPU's rules are kept."""

import contextlib
import os
import pickle
import re
import runpy
import signal
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import SpaceCard
from PIL import Image

ROOT = Path(__file__).parent.parent
FIELDS = {
    "title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file", "pinned", "license",
    "short_description", "models", "datasets", "tags", "thumbnail", "preload_from_hub", "suggested_hardware",
}  # fmt: skip
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def test_the_front_matter_is_what_spaces_reads():
    card = SpaceCard((ROOT / "README.md").read_text()).data.to_dict()
    assert set(card) <= FIELDS
    assert card["sdk"] == "gradio" and card["license"] == "mit"
    assert {card["colorFrom"], card["colorTo"]} <= COLOURS
    assert len(card["short_description"]) <= 60
    assert card["python_version"] == "3.12" and (ROOT / card["app_file"]).is_file()
    pin = re.search(r"^gradio==(.+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert pin and card["sdk_version"] == pin[1]


def test_the_test_command_of_the_readme_is_the_one_that_ci_runs():
    commands = [line for line in (ROOT / "README.md").read_text().splitlines() if line.endswith("python -m pytest")]
    assert len(commands) == 1 and "requirements-dev.txt" in commands[0]
    assert "grep -m1 'python -m pytest$' README.md" in (ROOT / ".ci" / "run").read_text()


@pytest.fixture
def zero_gpu(monkeypatch):
    """A stand-in for the ``spaces`` package: like its fork, it passes arguments and results through pickle."""
    calls = []

    def gpu(duration):
        def decorate(function):
            def lend(*arguments):
                calls.append(duration)
                return pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(arguments)))))

            return lend

        return decorate

    monkeypatch.setitem(sys.modules, "spaces", types.SimpleNamespace(GPU=gpu))
    monkeypatch.setattr("vit_demo.accelerator.ZERO_GPU", True)
    monkeypatch.setattr("vit_demo.inference.engine.ZERO_GPU", True)
    monkeypatch.setattr("vit_demo.inference.passes.ZERO_GPU", True)
    return calls


def test_on_zero_gpu_only_the_pass_itself_borrows_a_gpu(zero_gpu):
    from vit_demo.inference.engine import Engine

    sketch = np.full((64, 64), 255, np.uint8)
    sketch[10:54, 30:36] = 0
    lent = Engine("cpu").explore(Image.fromarray(sketch), "digits-tiny", 4)
    assert zero_gpu and zero_gpu[0] <= 60
    plain = Engine("cpu")
    plain._execute = plain._execute_here
    expected = plain.explore(Image.fromarray(sketch), "digits-tiny", 4)
    np.testing.assert_array_equal(lent.logits, expected.logits)
    np.testing.assert_array_equal(lent.attention_maps(), expected.attention_maps())
    assert all(torch.equal(a, b) for a, b in zip(lent.trace.q, expected.trace.q, strict=True))
    loans = len(zero_gpu)
    for ask in (
        lambda ex: ex.relevance("3"),
        lambda ex: ex.heatmap("patch_dropping", budget=8, progress=lambda *_: None),
        lambda ex: ex.faithfulness("rollout", steps=3, seeds=1).deletion,
        lambda ex: ex.drop_patches([(0, 0)]).rollout(),
    ):
        np.testing.assert_array_equal(ask(lent), ask(expected))
    assert len(zero_gpu) == loans + 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, as ZeroGPU does")
def test_what_runs_in_the_fork_of_zero_gpu_takes_no_lock(zero_gpu):
    """ZeroGPU forks the server: a lock that another thread holds at that moment stays locked in the child for ever."""
    from vit_demo.inference.engine import Engine

    engine, forks = Engine("cpu"), []

    def forked(*arguments):
        locks = [engine._models._lock, engine._results._lock, engine._prepared._lock, engine.jobs._lock]
        held, forked_already = threading.Event(), threading.Event()

        def hold() -> None:
            with contextlib.ExitStack() as stack:
                for lock in locks:
                    stack.enter_context(lock)
                held.set()
                forked_already.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(10)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(60)  # a child that waits for ever fails the test
            try:
                answer = pickle.dumps(engine._execute_here(*arguments))
            except BaseException as error:
                answer = pickle.dumps(repr(error))
            with os.fdopen(writer, "wb") as out:
                out.write(answer)
            os._exit(0)
        os.close(writer)
        forked_already.set()
        thread.join()
        with os.fdopen(reader, "rb") as answered:
            said = answered.read()
        assert os.waitpid(child, 0)[1] == 0, "the child hung"
        forks.append(child)
        return pickle.loads(said)

    engine._execute = forked
    sketch = np.full((64, 64), 255, np.uint8)
    sketch[10:54, 30:36] = 0
    plain = Engine("cpu")
    plain._execute = plain._execute_here
    lent, expected = (one.explore(Image.fromarray(sketch), "digits-tiny", 7) for one in (engine, plain))
    np.testing.assert_array_equal(lent.logits, expected.logits)
    for ask in (
        lambda ex: ex.relevance("3"),
        lambda ex: ex.heatmap("attnlrp", "3"),
        lambda ex: ex.heatmap("occlusion"),
        lambda ex: ex.drop_patches([(0, 0)]).rollout(),
        lambda ex: ex.faithfulness("rollout", steps=3, seeds=1).deletion,
        lambda ex: np.array(ex.randomization("rollout")),
    ):
        np.testing.assert_allclose(ask(lent), ask(expected), atol=1e-6)
    assert len(forks) == 7


def test_spaces_is_imported_before_anything_that_could_touch_cuda(monkeypatch):
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
