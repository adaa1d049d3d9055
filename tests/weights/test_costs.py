"""The estimates of bytes, compared with what torch allocates: above it, and not by far."""

import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from vit_demo.methods import find_method
from vit_demo.model import ViT, ViTConfig
from vit_demo.service.job_limits import SMALL_JOB, job_bytes
from vit_demo.service.source import Source
from vit_demo.trace import OwnViT, Trace, adapt, outline
from vit_demo.training.small import BATCH_SIZE, quick_digits, train_small
from vit_demo.weights import PRESETS, costs

DIGITS = ViTConfig(
    image_size=28, patch_size=4, in_channels=1, num_classes=10, embed_dim=32, depth=3, num_heads=4, mlp_ratio=2.0
)
SHAPES = {
    "few tokens": replace(DIGITS, patch_size=7),
    "many tokens": replace(DIGITS, patch_size=2),
    "many heads": replace(DIGITS, patch_size=2, num_heads=32, projection="per_head"),
    "a wide MLP": replace(DIGITS, mlp_ratio=16.0),
    "photos": ViTConfig(image_size=64, patch_size=4, num_classes=20, embed_dim=48, depth=4, num_heads=3),
}


class Allocated(TorchDispatchMode):
    """Counts the bytes of all storages that are made within the block, while they live."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._alive: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {x.untyped_storage()._cdata for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in given and storage._cdata not in self._alive:
                    self._alive[storage._cdata] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self._free, storage._cdata)
        return out

    def _free(self, key: int) -> None:
        self.now -= self._alive.pop(key, 0)


def peak(work: Callable[[], object]) -> int:
    with Allocated() as seen:
        work()
    return seen.peak


def assert_near(estimate: int, allocated: int, most: float) -> None:
    assert allocated <= 1.05 * estimate, f"{allocated:,} bytes, where {estimate:,} were expected"
    assert estimate < most * allocated, f"{allocated:,} bytes, where {estimate:,} were expected"


@pytest.fixture(params=SHAPES)
def network(request):
    torch.manual_seed(0)
    config = SHAPES[request.param]
    images = torch.rand(1, config.in_channels, config.image_size, config.image_size)
    return OwnViT(ViT(config).eval().requires_grad_(False)), images


@torch.no_grad()
def test_of_a_pass(network):
    model, images = network
    assert_near(costs.forward(model.config, model.patch_size).nbytes, peak(lambda: model(images, Trace())), 1.5)


@pytest.mark.parametrize("method", ["relevance", "attnlrp", "libra_fullgrad", "grad_cam", "legrad"])
def test_of_a_map(network, method):
    model, images = network
    function = find_method(method).function
    allocated = peak(lambda: function(model, images, 3, patch_size=model.patch_size))
    assert allocated <= 1.05 * costs.backward(model.config, model.patch_size).nbytes


@pytest.mark.parametrize("network", ["few tokens", "many heads", "photos"], indirect=True)
@pytest.mark.parametrize(("method", "options"), [("occlusion", {}), ("integrated_gradients", {"steps": 64})])
def test_of_many_passes(network, method, options):
    model, images = network
    function = find_method(method).function
    allocated = peak(lambda: function(model, images, 3, patch_size=model.patch_size, **options))
    assert allocated <= 1.3 * costs.many_passes(model.config, model.patch_size).nbytes


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("vit_tiny_patch16_224", {"img_size": 240, "patch_size": 16, "depth": 4}),
        ("vit_tiny_patch16_224", {"img_size": 160, "patch_size": 8, "depth": 2, "num_heads": 32}),
        ("vit_tiny_patch16_224", {"img_size": 160, "patch_size": 8, "depth": 4, "num_heads": 6, "mlp_ratio": 1.0}),
        ("beit_base_patch16_224", {"depth": 2, "embed_dim": 96, "num_heads": 6}),
    ],
)
def test_of_a_proof(architecture, options):
    network = timm.create_model(architecture, num_classes=3, **options).eval().requires_grad_(False)
    size = options.get("img_size", 224)
    config, has_mask = outline(network, size)
    allocated = peak(lambda: adapt(network, size, patch_size=config.patch_size))
    estimate = costs.proof(config, config.patch_size, has_mask=has_mask).nbytes
    assert_near(estimate, allocated, 1.5 if has_mask else 2.5)


@pytest.mark.parametrize("shape", ["few tokens", "many tokens", "many heads", "a wide MLP"])
def test_of_a_step_of_training(shape):
    config = replace(SHAPES[shape], depth=2)
    model, images = ViT(config), torch.rand(16, 1, 28, 28)
    optimiser = torch.optim.AdamW(model.parameters())

    def step() -> None:
        loss = F.cross_entropy(model(images), torch.zeros(16, dtype=torch.long))
        loss.backward()
        optimiser.step()

    assert_near(costs.training_step(config, 16).nbytes, peak(step), 2.5)


def test_of_a_whole_training():
    config = replace(DIGITS, num_heads=8, projection="per_head", depth=2)
    quick_digits()
    allocated = peak(lambda: train_small(config, steps=2))
    assert_near(costs.training_step(config, BATCH_SIZE).nbytes, allocated, 2.5)


def test_no_digit_waits_for_memory():
    for preset in PRESETS.values():
        if preset.task == "digits":
            assert max(job_bytes(preset, size) for size in preset.patch_sizes) < SMALL_JOB


def test_only_what_takes_no_longer_than_a_pass_on_a_digit_is_placed_with_the_digits():
    """By its cost, not by its name: the same kind of work may be quick on few tokens and take long on many."""
    preset, source = PRESETS["digits-small"], Source("a digit", lambda: None)
    compare = partial(costs.compare_tokens, pictures=2)
    placed = {
        (cost, size): source.turn(preset, size, cost).pool
        for cost in (costs.forward, costs.backward, costs.many_passes, compare)
        for size in (2, 4)
    }
    assert [name for name, pool in placed.items() if pool == "digits"] == [
        (costs.forward, 2),
        (costs.forward, 4),
        (costs.backward, 4),
        (compare, 4),
    ]
    assert placed[costs.many_passes, 4] == "slow" and source.turn(preset, 4, times=60).pool == "photos"
    brought = replace(preset, trusted=False)
    assert [source.turn(brought, 2, cost).pool for cost in (costs.forward, costs.many_passes)] == [
        "custom",
        "custom slow",
    ]
