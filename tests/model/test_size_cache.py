"""What is derived from a parameter is remembered while that parameter is unchanged, and no longer."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.resample import CACHED_SIZES, SizeCache, num_bytes, resample_patch_embed, resample_pos_embed


@pytest.fixture
def model(tiny: ViTConfig, randomise: Callable[..., nn.Module]) -> ViT:
    return randomise(ViT(tiny))


def _kernel(model: ViT, patch_size: int) -> Tensor:
    embedding = model.patch_embed
    return embedding.kernels.get(embedding.proj.weight, patch_size, resample_patch_embed)


@torch.no_grad()
def _derive_both(model: ViT) -> Tensor:
    """Fills both caches; gives the kernel."""
    model.pos_embed_for((8, 8))
    return _kernel(model, 2)


def _check_fresh(model: ViT, before: Tensor) -> None:
    """Kernel and positions were derived again, from the parameters as they are now."""
    with torch.no_grad():
        now = _kernel(model, 2)
        assert not torch.equal(now, before.to(now.dtype))
        assert torch.equal(now, resample_patch_embed(model.patch_embed.proj.weight, 2))
        assert torch.equal(model.pos_embed_for((8, 8)), resample_pos_embed(model.pos_embed, (8, 8), 1))


def test_unchanged_weights_give_the_same_object(model: ViT) -> None:
    with torch.no_grad():
        kernel, positions = _kernel(model, 2), model.pos_embed_for((8, 8))
        assert _kernel(model, 8) is _kernel(model, 8)
        assert _kernel(model, 2) is kernel, "several sizes are remembered side by side"
        assert model.pos_embed_for((8, 8)) is positions


def test_weights_that_are_no_numbers_are_remembered_too(model: ViT) -> None:
    with torch.no_grad():
        model.patch_embed.proj.weight.fill_(float("nan"))
        assert _kernel(model, 2) is _kernel(model, 2)


def test_frozen_weights_are_cached_with_gradients_enabled(model: ViT) -> None:
    model.requires_grad_(False)
    assert _kernel(model, 2) is _kernel(model, 2)


@pytest.mark.parametrize("assign", [False, True], ids=["copied", "assigned"])
def test_loading_weights_clears_the_cache(
    model: ViT, tiny: ViTConfig, randomise: Callable[..., nn.Module], assign: bool
) -> None:
    before = _derive_both(model)
    model.load_state_dict(randomise(ViT(tiny)).state_dict(), assign=assign)
    _check_fresh(model, before)


@pytest.mark.parametrize("fused", [False, True])
def test_an_optimiser_step_clears_the_cache(model: ViT, fused: bool) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    images = torch.randn(2, 3, 16, 16)
    before = _derive_both(model)
    model(images, patch_size=2).square().sum().backward()
    optimiser.step()
    _check_fresh(model, before)


def test_a_moving_average_of_the_weights_clears_the_cache(model: ViT) -> None:
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    average.update_parameters(model)
    with torch.no_grad():
        before = _kernel(average.module, 2)
        average.module.pos_embed_for((8, 8))
        for parameter in model.parameters():
            parameter += 1.0
    average.update_parameters(model)
    _check_fresh(average.module, before)


def test_another_dtype_clears_the_cache(model: ViT) -> None:
    with torch.no_grad():
        before = _kernel(model, 2)
        model.to(torch.bfloat16)
        assert _kernel(model, 2).dtype == torch.bfloat16
        assert model.pos_embed_for((8, 8)).dtype == torch.bfloat16
        assert model(torch.randn(1, 3, 16, 16, dtype=torch.bfloat16), patch_size=2).dtype == torch.bfloat16
        model.to(torch.float32)  # rounded by now
    _check_fresh(model, before)


def test_a_copy_has_its_own_cache(model: ViT) -> None:
    with torch.no_grad():
        before = _kernel(model, 2)
        copy = deepcopy(model)
        copy.patch_embed.proj.weight += 1.0
        assert not torch.equal(_kernel(copy, 2), before)
        assert _kernel(model, 2) is before


def test_nothing_is_cached_under_gradients(model: ViT) -> None:
    first, second = _kernel(model, 2), _kernel(model, 2)
    assert first is not second
    assert first.requires_grad
    with torch.no_grad():
        assert not _kernel(model, 2).requires_grad
    assert _kernel(model, 2).requires_grad


def test_what_was_derived_in_inference_mode_serves_a_later_backward(model: ViT) -> None:
    model.requires_grad_(False)
    images = torch.randn(1, 3, 16, 16)
    with torch.inference_mode():
        expected = model(images, patch_size=2)
    images.requires_grad_()
    logits = model(images, patch_size=2)
    torch.testing.assert_close(logits, expected.clone())
    logits.sum().backward()
    assert images.grad.abs().max() > 0


def test_weights_made_in_inference_mode_are_never_stale(tiny: ViTConfig) -> None:
    with torch.inference_mode():
        model = ViT(tiny).eval()
        before = _kernel(model, 2)
        model.patch_embed.proj.weight += 1.0
        _check_fresh(model, before)


def test_changing_the_data_of_a_parameter_clears_the_cache(model: ViT) -> None:
    """That leaves no trace in the version of the tensor."""
    before = _derive_both(model)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    _check_fresh(model, before)


def test_its_own_size_needs_no_copy(model: ViT) -> None:
    with torch.no_grad():
        model(torch.randn(1, 3, 16, 16))
    assert model.patch_embed.kernels.tensors == model.pos_embeds.tensors == []


@pytest.mark.parametrize("patch_size", [4, 2])
def test_a_used_network_can_be_exported(model: ViT, patch_size: int) -> None:
    images = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        expected = model(images, patch_size=patch_size)
        exported = torch.export.export(model, (images,), {"patch_size": patch_size}).module()
        torch.testing.assert_close(exported(images, patch_size=patch_size), expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_stacked_parameters_can_be_mapped_over(model: ViT) -> None:
    images = torch.randn(1, 3, 16, 16)
    stacked = {name: torch.stack([value, 2 * value]) for name, value in model.state_dict().items()}

    def run(parameters: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(model, parameters, (images,), {"patch_size": 2})

    with torch.no_grad():
        found = torch.vmap(run)(stacked)
        torch.testing.assert_close(found[0], model(images, patch_size=2))
        torch.testing.assert_close(found[1], run({name: value[1] for name, value in stacked.items()}))


class Watched(Tensor):
    """Does something while it is being copied."""

    def __deepcopy__(self, memo: dict) -> Tensor:
        self.meanwhile()
        return self.clone()


def test_a_network_can_be_copied_while_another_size_is_derived(model: ViT) -> None:
    def derive(kernel: Tensor, size: int) -> Tensor:
        derived = resample_patch_embed(kernel, size).as_subclass(Watched)
        derived.meanwhile = lambda: _kernel(model, 16)
        return derived

    embedding = model.patch_embed
    with torch.no_grad():
        for size in (2, 8):
            embedding.kernels.get(embedding.proj.weight, size, derive)
        copied = deepcopy(model)
        assert torch.equal(_kernel(copied, 16), _kernel(model, 16))


def test_copies_and_pickles_start_with_an_empty_cache(model: ViT) -> None:
    with torch.no_grad():
        plain = len(pickle.dumps(model))
        before = _kernel(model, 2)
        model.pos_embed_for((8, 8))
    assert len(pickle.dumps(model)) == plain
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.patch_embed.kernels.tensors == other.pos_embeds.tensors == []
    with torch.no_grad():
        assert _kernel(model, 2) is before


def test_only_the_sizes_used_last_are_kept() -> None:
    cache, parameter, derived = SizeCache(), torch.zeros(3), []

    def derive(tensor: Tensor, size: int) -> Tensor:
        derived.append(size)
        return tensor + size

    for size in (*range(CACHED_SIZES), 0, CACHED_SIZES):  # 0 is used again before the last one comes
        cache.get(parameter, size, derive)
    assert num_bytes(cache.tensors) == (CACHED_SIZES + 1) * 3 * 4, "and a copy of the parameter"
    derived.clear()
    for size in (0, *range(2, CACHED_SIZES + 1)):
        assert cache.get(parameter, size, derive)[0] == size
    assert derived == []
    cache.get(parameter, 1, derive)
    assert derived == [1]


def test_threads_that_request_different_sizes_each_get_theirs() -> None:
    """Also while the parameter changes; a switch between threads is forced at almost every step."""
    cache, parameter, wrong = SizeCache(), torch.zeros(1), []
    interval = sys.getswitchinterval()

    def ask(seed: int) -> None:
        for step in range(400):
            size, before = (seed + step) % 12, float(parameter)
            found = cache.get(parameter, size, lambda tensor, size: tensor + size)
            if not before <= float(found) - size <= float(parameter):
                wrong.append((before, size, float(found)))
            if seed == 0 and step % 10 == 0:
                parameter.add_(1000.0)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert wrong == [] and len(cache.tensors) <= CACHED_SIZES + 1
