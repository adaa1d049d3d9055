"""Kernels and positions for other sizes: derived anew, unless the weights are said to stay."""

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
from vit_demo.model.resample import NUM_SIZES, Resampled, resample_patch_embed, resample_pos_embed
from vit_demo.trace import OwnViT


@pytest.fixture
def model(tiny: ViTConfig, randomise: Callable[..., nn.Module]) -> ViT:
    return randomise(ViT(tiny))


@pytest.fixture
def kept(model: ViT) -> ViT:
    """The same network, which keeps what it derives."""
    OwnViT(model).keep_sizes()
    return model


def _both(model: ViT) -> tuple[Tensor, Tensor]:
    """Kernel and positions for another size."""
    embedding = model.patch_embed
    return embedding.kernels.get(embedding.proj.weight, 2, resample_patch_embed), model.pos_embed_for((8, 8))


def _check_fresh(model: ViT) -> None:
    """Both follow from the parameters as they are now."""
    with torch.no_grad():
        kernel, positions = _both(model)
        assert torch.equal(kernel, resample_patch_embed(model.patch_embed.proj.weight, 2))
        assert torch.equal(positions, resample_pos_embed(model.pos_embed, (8, 8), 1))


def _step(model: ViT) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    model(torch.randn(2, 3, 16, 16), patch_size=2).square().sum().backward()
    optimiser.step()


def _average(model: ViT) -> None:
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    average.update_parameters(model)
    _both(average.module)
    _scale(model)
    average.update_parameters(model)
    _check_fresh(average.module)


def _scale(model: ViT) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.5)  # which leaves no trace in the version of the tensor


@pytest.mark.parametrize("change", [_step, _average, _scale, lambda model: model.to(torch.bfloat16)])
def test_a_network_whose_weights_may_change_keeps_nothing(model: ViT, change: Callable[[ViT], object]) -> None:
    with torch.no_grad():
        before = _both(model)
    change(model)
    _check_fresh(model)
    with torch.no_grad():
        assert not any(torch.equal(old, new.to(old.dtype)) for old, new in zip(before, _both(model), strict=True))
        assert model.patch_embed.kernels.tensors == model.pos_embeds.tensors == []


def test_weights_that_stay_give_the_same_object_for_each_size(kept: ViT) -> None:
    with torch.no_grad():
        kernel, positions = _both(kept)
        kept(torch.randn(1, 3, 16, 16), patch_size=8)
        assert _both(kept)[0] is kernel and _both(kept)[1] is positions
        _check_fresh(kept)


def test_its_own_size_needs_no_copy(kept: ViT) -> None:
    with torch.no_grad():
        kept(torch.randn(1, 3, 16, 16))
    assert kept.patch_embed.kernels.tensors == kept.pos_embeds.tensors == []


@pytest.mark.parametrize("copy", [deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_may_change(kept: ViT, copy: Callable[[ViT], ViT]) -> None:
    with torch.no_grad():
        before = _both(kept)
        copied = copy(kept)
        _scale(copied)
        _check_fresh(copied)
        assert copied.patch_embed.kernels.tensors == copied.pos_embeds.tensors == []
        assert _both(kept)[0] is before[0]


def test_another_dtype_has_its_own(kept: ViT) -> None:
    with torch.no_grad():
        _both(kept)
        kept.to(torch.bfloat16)
        _check_fresh(kept)
        assert kept(torch.randn(1, 3, 16, 16, dtype=torch.bfloat16), patch_size=2).dtype == torch.bfloat16


def test_nothing_is_kept_under_gradients(kept: ViT) -> None:
    assert _both(kept)[0] is not _both(kept)[0] and _both(kept)[0].requires_grad
    with torch.no_grad():
        assert not _both(kept)[0].requires_grad
    assert _both(kept)[0].requires_grad


def test_what_was_derived_in_inference_mode_serves_a_later_backward(kept: ViT) -> None:
    kept.requires_grad_(False)
    images = torch.randn(1, 3, 16, 16)
    with torch.inference_mode():
        expected = kept(images, patch_size=2)
    images.requires_grad_()
    logits = kept(images, patch_size=2)
    torch.testing.assert_close(logits, expected.clone())
    logits.sum().backward()
    assert images.grad.abs().max() > 0


@pytest.mark.parametrize("patch_size", [4, 2])
def test_a_used_network_can_be_exported(kept: ViT, patch_size: int) -> None:
    images = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        expected = kept(images, patch_size=patch_size)
        exported = torch.export.export(kept, (images,), {"patch_size": patch_size}).module()
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


def test_only_the_sizes_used_last_are_kept() -> None:
    cache, parameter, derived = Resampled(), torch.zeros(3), []
    cache.keep()

    def derive(tensor: Tensor, size: int) -> Tensor:
        derived.append(size)
        return tensor + size

    for size in (*range(NUM_SIZES), 0, NUM_SIZES):  # 0 is used again before the last comes
        cache.get(parameter, size, derive)
    derived.clear()
    for size in (0, *range(2, NUM_SIZES + 1)):
        assert cache.get(parameter, size, derive)[0] == size
    assert derived == []
    cache.get(parameter, 1, derive)
    assert derived == [1] and len(cache.tensors) == NUM_SIZES


def test_threads_that_want_different_sizes_each_get_theirs() -> None:
    """A switch between threads is forced at almost every step."""
    cache, parameter, wrong = Resampled(), torch.zeros(1), []
    cache.keep()
    interval = sys.getswitchinterval()

    def ask(seed: int) -> None:
        for step in range(400):
            size = (seed + step) % 12
            if float(cache.get(parameter, size, lambda tensor, size: tensor + size)) != size:
                wrong.append(size)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert wrong == [] and len(cache.tensors) <= NUM_SIZES
