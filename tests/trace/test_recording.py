"""A recording of our network keeps what the pass makes anyway, and starts afresh each time."""

import gc

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import vit_demo
from vit_demo.errors import PresetError
from vit_demo.trace import OwnViT, Trace, TracedViT

from .networks import of_this_package


@pytest.fixture(params=["fused", "per_head"])
def network(request: pytest.FixtureRequest) -> TracedViT:
    return OwnViT(of_this_package(projection=request.param)())


@pytest.mark.parametrize("patch_size", [2, 8, 16])
def test_a_recording_changes_no_bit_of_the_logits(network: TracedViT, images: Tensor, patch_size: int) -> None:
    with torch.inference_mode():
        plain = network.module(images, patch_size=patch_size)
        for recording in (None, Trace(), Trace(record_tokens=True)):
            assert torch.equal(network(images, recording, patch_size=patch_size), plain)


def test_a_recording_holds_views_of_the_qkv_maps_own_outputs(network: TracedViT, images: Tensor) -> None:
    outputs: list[Tensor] = []
    for block in network.blocks:
        block.attn.qkv.register_forward_hook(lambda _, __, output: outputs.append(output))
    recording = Trace()
    with torch.inference_mode():
        network(images, recording)
    assert len(outputs) == recording.num_blocks == 3
    for output, q, k, v in zip(outputs, recording.q, recording.k, recording.v, strict=True):
        storage = output.untyped_storage()
        assert storage.nbytes() == output.numel() * output.element_size(), "no attention map hides behind it"
        for index, view in enumerate((q, k, v)):
            assert view.untyped_storage().data_ptr() == storage.data_ptr()
            part = output[..., 24 * index : 24 * index + 24].unflatten(2, (3, 8)).transpose(1, 2)
            assert torch.equal(view, part)


def test_tokens_are_those_before_the_first_block_and_after_each(network: TracedViT, images: Tensor) -> None:
    vit, recording = network.module, Trace(record_tokens=True)
    with torch.inference_mode():
        network(images, recording, patch_size=4)
        expected = [vit.embed(images, (8, 8), 4)]
        for block in vit.blocks:
            expected.append(block(expected[-1]))
    torch.testing.assert_close(recording.tokens, expected, atol=0, rtol=0)


@pytest.mark.parametrize("recorded", [False, True])
def test_without_a_recording_no_tensor_outlives_the_pass(network: TracedViT, images: Tensor, recorded: bool) -> None:
    def alive() -> dict[int, Tensor]:
        gc.collect()
        return {id(one): one for one in gc.get_objects() if type(one) is Tensor}

    with torch.inference_mode():
        network(images)
        before = alive()  # kept, so that no other tensor gets the identity of one of these
        logits = network(images, Trace() if recorded else None)
        assert [one.shape for identity, one in alive().items() if identity not in before] == [logits.shape]


def test_a_reused_recording_holds_only_the_last_pass_and_leaves_the_one_before_alone(network, images) -> None:
    recording, afresh = Trace(record_tokens=True), Trace(record_tokens=True)
    with torch.inference_mode():
        network(images, recording, kept_patches=torch.tensor([[0, 3]]).expand(2, -1))
        earlier = recording.q
        copies = [q.clone() for q in earlier]
        for one in (recording, afresh):
            network(images[:1, :, :16], one)
    assert (recording.grid, recording.num_prefix_tokens, recording.kept_patches) == ((2, 4), 1, None)
    assert (recording.num_blocks, recording.num_heads, recording.num_tokens) == (3, 3, 9)
    for name in ("q", "k", "v", "tokens"):
        torch.testing.assert_close(getattr(recording, name), getattr(afresh, name), atol=0, rtol=0)
    torch.testing.assert_close(earlier, copies, atol=0, rtol=0)


@pytest.mark.parametrize(
    ("fields", "prefix"), [({"num_registers": 4}, 5), ({"class_token": False, "pool": "mean"}, 0)], ids=str
)
def test_a_recording_counts_the_prefix_tokens_of_its_network(fields, prefix: int, images: Tensor) -> None:
    recording = Trace()
    OwnViT(of_this_package(**fields)())(images, recording)
    assert (recording.num_prefix_tokens, recording.num_tokens) == (prefix, prefix + 16)


def test_a_recording_can_be_differentiated(network: TracedViT, images: Tensor) -> None:
    recording = Trace()
    network(images, recording)
    (gradient,) = torch.autograd.grad(recording.q[-1].square().sum(), network.module.pos_embed)
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("kept_patches", [None, torch.tensor([[0, 3], [1, 2]])], ids=["all", "some"])
def test_a_recording_moves_to_another_device_with_all_it_holds(network: TracedViT, images, kept_patches) -> None:
    recording = Trace(record_tokens=True)
    network(images, recording, kept_patches=kept_patches)
    recording.pooling = torch.ones(2, 3, 17)
    moved = recording.to("meta")
    assert moved.pooling.device.type == "meta" and recording.q[0].device.type == "cpu"
    assert (moved.kept_patches is None) == (kept_patches is None)
    assert kept_patches is None or moved.kept_patches.device.type == "meta"
    assert (moved.grid, moved.num_prefix_tokens, moved.record_tokens) == ((4, 4), 1, True)
    for name in ("q", "k", "v", "tokens"):
        assert all(one.device.type == "meta" for one in getattr(moved, name))
        assert [x.shape for x in getattr(moved, name)] == [x.shape for x in getattr(recording, name)]


def test_a_result_has_the_trace_that_the_package_exports() -> None:
    network = of_this_package()()
    ex = vit_demo.explore(torch.zeros(3, 32, 32), network)
    with torch.no_grad(), vit_demo.Trace() as trace:
        network(ex.pixels)
    assert type(ex.trace) is vit_demo.Trace
    torch.testing.assert_close(ex.trace.attention(-1), trace.attention(-1))


def test_a_trace_alone_refuses_what_it_would_keep_wrongly() -> None:
    qkv = torch.randn(3, 2, 3, 5, 8)
    with pytest.raises(PresetError, match="in place"), vit_demo.Trace():
        F.scaled_dot_product_attention(*qkv)
        qkv[0].mul_(2)
    with torch.inference_mode():  # where torch counts no changes
        q, k, v = qkv.clone()
        with vit_demo.Trace() as trace:
            F.scaled_dot_product_attention(q, k, v)
            q.mul_(2)
    assert torch.equal(trace.q[0], qkv[0])
    with pytest.raises(PresetError, match="one picture at a time"), vit_demo.Trace():
        x = F.conv2d(torch.zeros(2, 3, 32, 32), torch.zeros(24, 3, 8, 8)).flatten(2).mT.unflatten(2, (3, 8))
        for part in x.transpose(1, 2).split(1):
            F.scaled_dot_product_attention(part, part, part)
