"""What happens when the memory of a device is too small: smaller chunks, then the CPU, with the same numbers."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo import methods
from vit_demo.inference import forward, networks
from vit_demo.inference.forward import retry_with_less_memory
from vit_demo.methods import chunking
from vit_demo.model import ViT
from vit_demo.service.engine import Engine
from vit_demo.trace import OwnViT, Trace
from vit_demo.weights import PRESETS, costs

OUT = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


@pytest.fixture(autouse=True)
def freed(monkeypatch):
    counts = []
    monkeypatch.setattr(forward, "_free_memory", counts.append)
    return counts


def run(failures, device="cuda"):
    """Fails so many times; gives where and with which budget each attempt was made."""
    tried = []

    def attempt(where):
        tried.append((where.type, chunking._factor.get()))
        if len(tried) <= len(failures):
            raise failures[len(tried) - 1]
        return "done"

    return tried, lambda: retry_with_less_memory(attempt, torch.device(device))


@pytest.mark.parametrize(
    ("failures", "wanted"),
    [
        ([], [("cuda", 1.0)]),
        ([OUT], [("cuda", 1.0), ("cuda", 0.125)]),
        ([RuntimeError("DefaultCPUAllocator: can't allocate memory")], [("cuda", 1.0), ("cuda", 0.125)]),
        ([OUT, RuntimeError("MPS backend out of memory (...)")], [("cuda", 1.0), ("cuda", 0.125), ("cpu", 1.0)]),
    ],
)
def test_first_smaller_chunks_then_the_cpu(freed, failures, wanted):
    tried, attempt = run(failures)
    assert attempt() == "done" and tried == wanted and len(freed) == len(failures)


@pytest.mark.parametrize(("failures", "device"), [([RuntimeError("a bug")], "cuda"), ([OUT, OUT], "cpu")])
def test_other_errors_are_not_tried_again_and_on_the_cpu_there_is_no_further_retry(failures, device):
    tried, attempt = run(failures, device)
    with pytest.raises(type(failures[-1]), match=str(failures[-1])):
        attempt()
    assert len(tried) == len(failures)


def test_a_map_computed_with_less_memory_is_the_same():
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 50, 3), np.uint8))
    ex = Engine("cpu").explore(photo, "photos-tiny", 20)
    budgets = []

    def short(model, *arguments, **options):
        budgets.append(chunking._factor.get())
        if len(budgets) == 1:
            raise OUT
        return methods.relevance(model, *arguments, **options)

    found = ex.run_on_model(short, ex.pixels, ex.target(), kept_patches=None)[0].numpy()
    np.testing.assert_allclose(found, ex.relevance(), atol=1e-6)
    assert budgets == [1.0, 0.125]


@pytest.mark.parametrize("patch_size", [4, 14])
def test_each_block_of_a_pass_counts_its_queries_keys_and_values(patch_size):
    preset = PRESETS["digits-small"]
    estimates, traces = [], []
    for depth in (1, 3):
        deep = replace(preset, config=replace(preset.config, depth=depth))
        estimates.append(costs.forward(deep.config, patch_size).nbytes)
        with torch.inference_mode():
            OwnViT(ViT(deep.config))(torch.zeros(1, 1, 28, 28), trace := Trace(), patch_size=patch_size)
        traces.append(trace.num_bytes)
    assert estimates[1] - estimates[0] == traces[1] - traces[0] > 0
    assert estimates[0] > 2 * traces[0], "beside them there are other activations"


def test_an_evicted_repository_is_freed_before_the_next_one_is_loaded(monkeypatch):
    """Networks are part of reference cycles: four ViT-B waited for garbage collection and took twice the memory."""
    alive = []

    def load(preset, patch_size):
        alive.append(sum(reference() is not None for reference in references))
        model = OwnViT(ViT(replace(preset.config, depth=1, embed_dim=16, num_heads=1)))
        model.itself = [model]
        references.append(weakref.ref(model))
        return model

    references = []
    monkeypatch.setattr(networks, "load_model", load)
    preset = replace(PRESETS["digits-small"], source="hub")
    engine = Engine("cpu")
    engine._models.max_bytes = 0  # nothing is kept
    gc.disable()
    try:
        for name in "abc":
            engine.model(replace(preset, repo=name), 4)
    finally:
        gc.enable()
    assert alive[1:] == [0, 0]
