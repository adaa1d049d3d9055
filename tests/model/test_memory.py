"""What networks, traces and what is derived from weights keep in memory, against sums by hand."""

from dataclasses import replace

import pytest
import torch

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.resample import num_bytes
from vit_demo.trace import OwnViT, Trace

BATCH, TOKENS, WIDTH = 3, 17, 24


def test_views_keep_their_whole_storage_and_share_it() -> None:
    whole = torch.zeros(10, 10)
    assert num_bytes([whole[0], whole[:, 1], whole.T]) == 400
    assert num_bytes([whole[0].clone(), whole[1].clone(), torch.zeros(3, dtype=torch.float16)]) == 40 + 40 + 6
    assert num_bytes([]) == 0


def test_a_trace_counts_each_fused_output_once(tiny: ViTConfig) -> None:
    trace = Trace()
    assert trace.num_bytes == 0
    model, images = OwnViT(ViT(tiny)), torch.randn(BATCH, 3, 16, 16)
    with torch.inference_mode():
        model(images, trace)
        fused = 3 * BATCH * TOKENS * WIDTH * 4
        assert trace.num_bytes == tiny.depth * fused
        trace.q, trace.v = [], []
        assert trace.num_bytes == tiny.depth * fused  # a view keeps q and v alive, too


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_a_trace_counts_queries_keys_and_values_that_share_no_memory(name: str) -> None:
    assert Trace(**{name: [torch.zeros(2, 3), torch.zeros(5)]}).num_bytes == 4 * 11
    assert Trace(q=[torch.zeros(2)], k=[torch.zeros(2)], v=[torch.zeros(2)]).num_bytes == 4 * 6


def test_a_trace_of_tokens_counts_those_of_every_depth_and_the_kept_patches(tiny: ViTConfig) -> None:
    trace, kept_patches = Trace(record_tokens=True), torch.tensor([[0, 3, 5]])
    with torch.inference_mode():
        OwnViT(ViT(tiny))(torch.randn(1, 3, 16, 16), trace, kept_patches=kept_patches)
    tokens = 4 * WIDTH * 4  # class token and three patches
    assert len(trace.tokens) == 3 and trace.num_bytes == 2 * 3 * tokens + 3 * tokens + 3 * 8


@pytest.mark.parametrize("learned", [True, False])
def test_a_network_counts_its_weights_and_what_it_derived(tiny: ViTConfig, learned: bool) -> None:
    model = OwnViT(ViT(replace(tiny, pos_embed="learned" if learned else "sincos"))).keep_sizes()
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    assert model.num_bytes == weights
    with torch.inference_mode():
        model(torch.randn(1, 3, 16, 16))
        assert model.num_bytes == weights  # the stored size is no copy
        model(torch.randn(1, 3, 16, 16), patch_size=2)
    assert model.num_bytes == weights + 4 * (WIDTH * 3 * 2 * 2 + learned * (1 + 64) * WIDTH)
