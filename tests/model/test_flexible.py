"""Other patch sizes and grids from the same weights."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from timm.layers import resample_abs_pos_embed
from timm.layers import resample_patch_embed as timm_resample_patch_embed
from torch import Tensor, nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.resample import _pi_matrix, resample_patch_embed, resample_pos_embed


@pytest.mark.parametrize(("old", "new"), [(4, 5), (4, 8), (4, 14), (7, 14)])
def test_an_upsampled_kernel_gives_the_same_token_for_an_upsampled_patch(old: int, new: int) -> None:
    kernel, patches = torch.randn(6, 3, old, old), torch.randn(10, 3, old, old)
    larger = F.interpolate(patches, size=(new, new), mode="bicubic", antialias=True)
    before = patches.flatten(1) @ kernel.flatten(1).T
    after = larger.flatten(1) @ resample_patch_embed(kernel, new).flatten(1).T
    torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("old", "new"), [(8, 4), (14, 7), (7, 2)])
def test_a_downsampled_kernel_is_the_least_squares_solution(old: int, new: int) -> None:
    """It is the least-squares answer: what is left over lies outside of what resized patches can tell apart."""
    kernel = torch.randn(6, 3, old, old)
    basis = torch.eye(old * old).reshape(old * old, 1, old, old)
    resize = F.interpolate(basis, size=(new, new), mode="bicubic", antialias=True).flatten(1)  # [old^2, new^2]
    left_over = resample_patch_embed(kernel, new).flatten(2) @ resize.T - kernel.flatten(2)
    assert left_over.abs().max() > 0.1
    torch.testing.assert_close(left_over @ resize, torch.zeros(6, 3, new * new), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("old", "new"), [(4, 2), (4, 7), (4, 14), (16, 8), (16, 32)])
def test_a_resampled_kernel_equals_timms(old: int, new: int) -> None:
    kernel = torch.randn(6, 3, old, old)
    torch.testing.assert_close(
        resample_patch_embed(kernel, new), timm_resample_patch_embed(kernel, [new, new]), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_resampling_keeps_the_dtype_and_the_same_size_is_the_kernel_itself(dtype: torch.dtype) -> None:
    kernel = torch.randn(6, 3, 4, 4, dtype=dtype)
    assert resample_patch_embed(kernel, 4) is kernel
    assert resample_patch_embed(kernel, 8).dtype == dtype
    assert resample_patch_embed(kernel, 8).shape == (6, 3, 8, 8)


@pytest.mark.parametrize("grid", [(4, 4), (2, 2), (8, 8), (2, 8), (3, 7), (16, 1)])
@pytest.mark.parametrize("num_prefix_tokens", [0, 1, 5])
def test_positions_equal_timms(grid: tuple[int, int], num_prefix_tokens: int) -> None:
    positions = torch.randn(1, num_prefix_tokens + 16, 24)
    ours = resample_pos_embed(positions, grid, num_prefix_tokens)
    theirs = resample_abs_pos_embed(positions, list(grid), old_size=[4, 4], num_prefix_tokens=num_prefix_tokens)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    assert torch.equal(ours[:, :num_prefix_tokens], positions[:, :num_prefix_tokens])


def test_positions_of_the_stored_grid_are_the_table_itself() -> None:
    positions = torch.randn(1, 17, 24)
    assert resample_pos_embed(positions, (4, 4), 1) is positions


def test_a_finer_stored_grid_serves_the_native_patch_size_too(tiny: ViTConfig) -> None:
    model = ViT(replace(tiny, pos_embed_grid=8))
    assert model.pos_embed.shape == (1, 65, 24)
    expected = resample_pos_embed(model.pos_embed, (4, 4), 1)
    torch.testing.assert_close(model.pos_embed_for((4, 4)), expected)
    assert model.pos_embed_for((8, 8)) is model.pos_embed


def test_going_to_another_patch_size_and_back_changes_no_bit(randomise: Callable[..., nn.Module]) -> None:
    config = ViTConfig(image_size=28, patch_size=14, num_classes=5, embed_dim=24, depth=1, num_heads=3)
    model = randomise(ViT(config))
    images = torch.randn(2, 3, 28, 28)
    stored = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.inference_mode():
        before = {size: model(images, patch_size=size) for size in (14, 7, 2)}
        after = {size: model(images, patch_size=size) for size in (2, 14, 7)}
        afresh = ViT(config).eval()
        afresh.load_state_dict(stored)
        for size, logits in after.items():
            assert torch.equal(logits, before[size])
            assert torch.equal(logits, afresh(images, patch_size=size))
    assert all(torch.equal(value, stored[name]) for name, value in model.state_dict().items())


def test_larger_patches_on_a_larger_image_see_the_same_tokens(tiny: ViTConfig) -> None:
    """Whole embedding: each patch blown up by itself and joined again gives the tokens of the original."""
    embedding, images = ViT(tiny).patch_embed, torch.randn(2, 3, 16, 16)
    patches = images.unfold(2, 4, 4).unfold(3, 4, 4)  # [B, C, 4, 4, p, p]
    larger = F.interpolate(patches.flatten(1, 3), size=(8, 8), mode="bicubic", antialias=True)
    larger = larger.unflatten(1, (3, 4, 4)).permute(0, 1, 2, 4, 3, 5).reshape(2, 3, 32, 32)
    torch.testing.assert_close(embedding(larger, 8), embedding(images, 4), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("position", ["learned", "sincos"])
@pytest.mark.parametrize(
    ("size", "patch_size", "grid"),
    [((8, 24), 4, (2, 6)), ((16, 16), 2, (8, 8)), ((24, 16), 8, (3, 2)), ((6, 9), 3, (2, 3))],
)
def test_rectangular_images_and_other_patch_sizes_work(
    tiny: ViTConfig, position: str, size: tuple[int, int], patch_size: int, grid: tuple[int, int]
) -> None:
    model = ViT(replace(tiny, pos_embed=position)).eval()
    images = torch.randn(2, 3, *size)
    with torch.inference_mode():
        assert model.forward_features(images, patch_size=patch_size).shape == (2, 1 + grid[0] * grid[1], 24)
        logits = model(images, patch_size=patch_size)
        model.patch_size = patch_size
        assert torch.equal(model(images), logits), "the model's own patch size is the default"
    assert logits.shape == (2, 5)


@pytest.mark.parametrize(
    ("size", "patch_size"), [((16, 16), 5), ((16, 18), 4), ((18, 16), 4), ((16, 16), 0), ((16, 16), -4)]
)
def test_a_patch_size_that_does_not_divide_is_refused_in_one_sentence(
    tiny: ViTConfig, size: tuple[int, int], patch_size: int
) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z][^.]+\.$") as error:
        ViT(tiny)(torch.randn(1, 3, *size), patch_size=patch_size)
    assert str(patch_size) in str(error.value)


@pytest.mark.parametrize("patch_size", [2, 4, 8])
def test_gradient_reaches_the_stored_kernel_through_any_patch_size(tiny: ViTConfig, patch_size: int) -> None:
    """The embedding is linear in its kernel, so a finite difference of any size is the derivative."""
    embedding, images = ViT(tiny).patch_embed, torch.randn(2, 3, 16, 16)

    def score() -> Tensor:
        tokens = embedding(images, patch_size)
        return (tokens * torch.linspace(-1, 1, tokens.numel()).view_as(tokens)).sum()

    (gradient,) = torch.autograd.grad(score(), embedding.proj.weight)
    step = torch.randn_like(gradient)
    before = score().item()
    with torch.no_grad():
        embedding.proj.weight += step
    assert score().item() - before == pytest.approx((gradient * step).sum().item(), rel=1e-3, abs=1e-3)


def test_a_size_first_seen_in_inference_mode_can_be_trained_afterwards() -> None:
    _pi_matrix.cache_clear()
    kernel = torch.randn(6, 3, 4, 4, requires_grad=True)
    with torch.inference_mode():
        resample_patch_embed(kernel, 2)
    resample_patch_embed(kernel, 2).sum().backward()
    assert kernel.grad.abs().max() > 0


@pytest.mark.parametrize(("size", "patch_size"), [((16, 16), 2), ((16, 16), 8), ((8, 24), 4)])
def test_gradient_reaches_stored_positions_through_any_grid(
    tiny: ViTConfig, size: tuple[int, int], patch_size: int
) -> None:
    model = ViT(tiny)
    logits = model(torch.randn(1, 3, *size), patch_size=patch_size)
    (gradient,) = torch.autograd.grad(logits.square().sum(), model.pos_embed)
    assert (gradient.abs().amax(-1) > 0).all()
