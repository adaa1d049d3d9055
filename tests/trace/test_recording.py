"""A recording keeps what the pass makes anyway, changes nothing, and starts afresh each time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.trace import Recording, TracedViT


@pytest.fixture(params=["fused", "per_head"])
def model(request: pytest.FixtureRequest, tiny: ViTConfig, randomise: Callable[..., nn.Module]) -> ViT:
    return randomise(ViT(replace(tiny, projection=request.param)))


def _watch_qkv(model: ViT, see: Callable[[Tensor], None]) -> None:
    for block in model.blocks:
        block.attn.qkv.register_forward_hook(lambda _, __, output: see(output))


@pytest.mark.parametrize("patch_size", [2, 4, 8])
def test_a_trace_changes_no_bit_of_the_logits(model: ViT, patch_size: int) -> None:
    images = torch.randn(3, 3, 16, 16)
    with torch.inference_mode():
        plain = model(images, patch_size=patch_size)
        assert torch.equal(model(images, Recording(), patch_size=patch_size), plain)


def test_a_trace_holds_views_of_the_qkv_maps_own_outputs(model: ViT) -> None:
    outputs: list[Tensor] = []
    _watch_qkv(model, outputs.append)
    trace = Recording()
    with torch.inference_mode():
        model(torch.randn(3, 3, 16, 16), trace)
    assert len(outputs) == trace.num_blocks == 2
    for output, q, k, v in zip(outputs, trace.q, trace.k, trace.v, strict=True):
        storage = output.untyped_storage()
        assert storage.nbytes() == output.numel() * output.element_size(), "no attention map hides behind it"
        for index, view in enumerate((q, k, v)):
            assert view.untyped_storage().data_ptr() == storage.data_ptr()
            part = output[..., 24 * index : 24 * index + 24].unflatten(2, (3, 8)).transpose(1, 2)
            assert torch.equal(view, part)


def test_without_a_trace_no_tensor_outlives_the_pass(model: ViT) -> None:
    def alive() -> dict[int, Tensor]:
        gc.collect()
        return {id(one): one for one in gc.get_objects() if type(one) is Tensor}

    images = torch.randn(3, 3, 16, 16)
    with torch.inference_mode():
        before = alive()  # kept, so that no other tensor gets the identity of one of these
        logits = model(images)
        assert [one.shape for identity, one in alive().items() if identity not in before] == [(3, 5)]
        assert logits.shape == (3, 5)


def test_a_reused_trace_holds_only_the_last_pass(model: ViT) -> None:
    recording, afresh = Recording(), Recording()
    images = torch.randn(1, 3, 8, 24)
    with torch.inference_mode():
        model(torch.randn(2, 3, 16, 16), trace)
        model(images, trace)
        model(images, afresh)
    assert (trace.grid, trace.num_prefix_tokens) == ((2, 6), 1)
    assert (trace.num_blocks, trace.num_heads, trace.num_tokens) == (2, 3, 13)
    for kept, expected in zip((*trace.q, *trace.k, *trace.v), (*afresh.q, *afresh.k, *afresh.v), strict=True):
        assert torch.equal(kept, expected)


def test_a_new_pass_leaves_results_taken_from_the_old_one_alone(model: ViT) -> None:
    trace = Recording()
    with torch.inference_mode():
        model(torch.randn(1, 3, 16, 16), trace)
        queries = trace.q
        before = [q.clone() for q in queries]
        model(torch.randn(1, 3, 16, 16), trace)
    assert all(torch.equal(q, same) for q, same in zip(queries, before, strict=True))


def test_a_trace_counts_the_prefix_tokens_of_its_model(tiny: ViTConfig) -> None:
    trace = Recording()
    ViT(replace(tiny, num_registers=4))(torch.randn(1, 3, 16, 16), trace)
    assert (trace.num_prefix_tokens, trace.num_tokens) == (5, 21)
    ViT(replace(tiny, class_token=False, pool="mean"))(torch.randn(1, 3, 16, 16), trace)
    assert (trace.num_prefix_tokens, trace.num_tokens) == (0, 16)


def test_a_trace_of_a_training_pass_can_be_differentiated(model: ViT) -> None:
    trace = Recording()
    model.train()(torch.randn(1, 3, 16, 16), trace)
    (gradient,) = torch.autograd.grad(trace.q[-1].square().sum(), model.pos_embed)
    assert gradient.abs().max() > 0


def test_a_trace_moves_to_another_device_with_all_it_holds(model: ViT) -> None:
    for kept_patches in (None, torch.tensor([[0, 3]])):
        trace = Recording(record_tokens=True)
        model(torch.randn(1, 3, 16, 16), trace, kept_patches=kept_patches)
        moved = trace.to("meta")
        rest = [] if moved.kept_patches is None else [moved.kept_patches]
        assert all(x.device.type == "meta" for x in (*moved.q, *moved.k, *moved.v, *moved.out.values(), *rest))
        assert (moved.kept_patches is None) == (kept_patches is None)
        assert (moved.grid, moved.num_prefix_tokens, moved.record_tokens) == (trace.grid, trace.num_prefix_tokens, True)
        for name in ("q", "k", "v", "tokens"):
            assert [x.shape for x in getattr(moved, name)] == [x.shape for x in getattr(trace, name)]
        assert list(moved.out) == list(trace.out) and trace.q[0].device.type == "cpu"
