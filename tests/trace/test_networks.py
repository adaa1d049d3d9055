"""Networks of other libraries: what is seen of them, and every method on them, beside explicit matrices."""

import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_demo
from benchmarks.explicit import Explicit
from vit_demo.errors import PresetError
from vit_demo.features import logit_lens, patch_tokens
from vit_demo.methods import METHODS, attention_matrix
from vit_demo.methods.attnlrp import attnlrp
from vit_demo.methods.norm_attention import norm_attention
from vit_demo.methods.relevance import relevance
from vit_demo.methods.rollout import rollout
from vit_demo.model.pooling import pooled_slices
from vit_demo.trace import Trace, TracedViT, adapt
from vit_demo.trace.probe import find_patch_size

from .networks import NETWORKS, own, plain, timm_vit

pytestmark = pytest.mark.filterwarnings("ignore")


def traced(network: TracedViT, images: Tensor, **options: Any) -> tuple[Tensor, Trace]:
    trace = Trace(record_tokens=True)
    with torch.no_grad():
        return network(images, trace, **options), trace


def test_the_output_is_the_networks_own_and_attention_that_of_its_matrices(network, images):
    logits, trace = traced(network, images)
    with torch.no_grad():
        expected = plain(network.module, images)
        if "Siglip" in type(network.module).__name__:  # its pooling asks torch for attention weights: another kernel
            torch.testing.assert_close(logits, expected, atol=1e-6, rtol=0)
        else:
            assert torch.equal(logits, expected)
        with Explicit() as explicit:
            plain(network.module, images)
    assert trace.grid == (4, 4) and trace.num_tokens == 16 + network.config.num_prefix_tokens
    if hasattr(network.module, "cls_token"):
        assert network.config.class_token == (network.module.cls_token is not None)
    assert trace.num_blocks == len(explicit.matrices) == 3 and trace.num_heads == 3
    for block, matrix in enumerate(explicit.matrices):
        torch.testing.assert_close(attention_matrix(trace, block), matrix, atol=1e-5, rtol=1e-4)
    row = torch.eye(trace.num_tokens)[0].expand(2, -1)
    for matrix in reversed(explicit.matrices):
        row = (row[:, None] @ matrix.mean(1))[:, 0] / 2 + row / 2
    torch.testing.assert_close(rollout(trace, 0), row, atol=1e-5, rtol=1e-4)


def test_a_parameter_that_is_called_cls_makes_no_class_token():
    module = own()
    module.cls_scale = torch.nn.Parameter(torch.ones(1))
    config = adapt(module, 32).config
    assert (config.class_token, config.num_registers, config.num_prefix_tokens) == (False, 0, 0)


class Matrix(nn.Module):
    """A head that is no ``nn.Linear`` and does not say how many numbers it gives."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(width, 5))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.matrix


def test_a_head_is_found_whatever_its_class():
    module = own()
    module.head = Matrix(module.head.in_features)
    assert adapt(module, 32).structure.has_head
    module.head = nn.Identity()
    assert not adapt(module, 32).structure.has_head


def test_the_public_trace_holds_the_same(network, images):
    _, expected = traced(network, images)
    with torch.no_grad(), vit_demo.Trace() as trace:
        plain(network.module, images)
    for block in range(3):
        torch.testing.assert_close(trace.attention(block), attention_matrix(expected, block), atol=1e-5, rtol=1e-4)
    if expected.pooling is not None:
        torch.testing.assert_close(trace.pooling, expected.pooling, atol=1e-6, rtol=1e-4)


def test_queries_that_share_keys_attend_to_those_of_their_group():
    q, k, v = torch.randn(2, 6, 5, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    with vit_demo.Trace() as trace:
        expected = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    for head in range(6):
        torch.testing.assert_close(trace.attention()[:, head] @ v[:, head // 2], expected[:, head])


@pytest.mark.parametrize("is_short", [True, False])
def test_relevance_is_that_of_explicit_matrices(network, images, is_short, monkeypatch):
    monkeypatch.setattr(sys.modules["vit_demo.methods.relevance"], "is_short", lambda q: is_short)
    with Explicit() as explicit:
        scores = plain(network.module, images.clone().requires_grad_())[:, 3].sum()
    prefix = network.config.num_prefix_tokens
    shares = torch.zeros(2, prefix + 16)
    for run in [] if explicit.pooling else pooled_slices(network.config.pool, prefix):
        shares[:, run] += 1 / len(shares[0, run]) / len(pooled_slices(network.config.pool, prefix))
    expected = explicit.relevance(scores, shares)[:, prefix:].unflatten(1, (4, 4))
    torch.testing.assert_close(relevance(network, images, 3), expected, atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("kind", ["parallel", "differential"])
def test_relevance_of_attentions_that_read_the_same_tokens_is_added(kind, is_short, images, monkeypatch):
    timm = pytest.importorskip("timm")
    parts = timm.models.vision_transformer
    block = {"block_fn": parts.ParallelThingsBlock} if kind == "parallel" else {"attn_layer": "diff"}
    network = adapt(timm_vit(depth=2, embed_dim=24, num_heads=2, **block)(), 32)
    monkeypatch.setattr(sys.modules["vit_demo.methods.relevance"], "is_short", lambda q: is_short)
    with Explicit() as explicit:
        scores = plain(network.module, images.clone().requires_grad_())[:, 3].sum()
    gradients = torch.autograd.grad(scores, explicit.matrices)
    first, second, third, fourth = (
        (matrix * gradient).relu().mean(1) for matrix, gradient in zip(explicit.matrices, gradients, strict=True)
    )
    one = torch.eye(17)[None]
    expected = ((one + third + fourth) @ (one + first + second) - one)[:, 0, 1:].unflatten(1, (4, 4)).detach()
    torch.testing.assert_close(relevance(network, images, 3), expected, atol=1e-6, rtol=1e-3)


def test_dropped_patches_are_out_of_the_sequence(network, images):
    kept = torch.tensor([[0, 3, 5, 6, 9, 15], [1, 2, 4, 8, 10, 11]])
    found, trace = traced(network, images, kept_patches=kept)
    assert trace.num_tokens == 6 + network.config.num_prefix_tokens and trace.kept_patches is kept
    prefix, before = network.config.num_prefix_tokens, network.leaves_out
    network.leaves_out = False
    try:
        masked, other = traced(network, images, kept_patches=kept)
    finally:
        network.leaves_out = before
    torch.testing.assert_close(found, masked, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(attention_matrix(trace, -1), attention_matrix(other, -1), atol=1e-5, rtol=1e-4)
    if "Simple" in type(network.module).__name__:
        return  # the reference below replaces the fused kernel alone
    for sample in range(2):  # one by one, with minus infinity at the others, and without their rows at the end
        rows = torch.cat([torch.arange(prefix), kept[sample] + prefix])
        dropped = torch.ones(16 + prefix, dtype=torch.bool).index_fill(0, rows, value=False)
        end = network.module.get_submodule(network.structure.exit)

        def cut(module: nn.Module, args: Any, output: Any, rows: Tensor = rows) -> Any:
            return output[:, rows] if isinstance(output, Tensor) else (output[0][:, rows],)

        handle = end.register_forward_hook(cut)
        try:
            with torch.no_grad(), Explicit(dropped):
                expected = plain(network.module, images[sample : sample + 1])
        finally:
            handle.remove()
        torch.testing.assert_close(found[sample : sample + 1], expected, atol=1e-5, rtol=1e-4)


def test_the_other_methods_give_maps(network, images):
    one = images[:1]
    for values in (attnlrp(network, one, 3), norm_attention(network, one, query=None)):
        assert values.shape == (1, 4, 4) and torch.isfinite(values).all() and values.abs().max() > 0
    occlusion = METHODS["occlusion"].function(network, one, 3)
    with torch.no_grad():
        whole = network(one).log_softmax(1)[0, 3]
        without = network(one, kept_patches=torch.arange(1, 16)[None]).log_softmax(1)[0, 3]
    torch.testing.assert_close(occlusion[0, 0, 0], whole - without, atol=1e-5, rtol=1e-4)


def test_tokens_of_every_depth(network, images):
    if not network.shows_tokens:
        with pytest.raises(vit_demo.InputError, match="between the blocks"):
            logit_lens(network, images)
        return
    logits, trace = traced(network, images)
    assert len(trace.tokens) == 4
    torch.testing.assert_close(logit_lens(network, images)[:, -1], logits, atol=1e-5, rtol=1e-4)
    found = patch_tokens(network, images[:1])
    assert found.tokens.shape == (4, 16, 24) and found.classes.shape[2] == network.config.num_classes
    torch.testing.assert_close(found.norms[1], trace.tokens[1][0, -16:].norm(dim=1), atol=1e-5, rtol=1e-4)


def test_a_head_that_reads_two_vectors_gets_the_class_token_s_own_for_the_first():
    network, x = adapt(NETWORKS["timm distilled"](), 32), torch.randn(18, 24)
    found, normed = network.read_patches(x), network.module.norm(x)
    for patch, token in enumerate(normed[2:]):
        expected = (network.module.head(normed[0]) + network.module.head_dist(token)) / 2
        torch.testing.assert_close(found[patch], expected, atol=1e-5, rtol=1e-4)


def test_a_network_may_have_one_block():
    assert adapt(timm_vit(depth=1)(), 32).structure.blocks == ("blocks.0",)


def test_without_a_convolution_the_patches_are_a_square_that_divides_the_picture():
    assert find_patch_size(nn.Identity(), (32, 32), 5 + 2 * 2) == 16  # not 3 x 3 patches


def test_what_cannot_be_traced_gets_a_sentence():
    convolutions = nn.Sequential(nn.Conv2d(3, 5, 8, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(PresetError, match="No attention was seen"):
        adapt(convolutions, 32)
    with pytest.raises(PresetError, match="No attention was seen"), vit_demo.Trace():
        convolutions(torch.zeros(1, 3, 32, 32))
    with pytest.raises(PresetError, match="does not take images of 3 x 24 x 24"):
        adapt(own(), 24)
    for wrong in (4, 5):
        with pytest.raises(PresetError, match="do not give the 16 tokens"):
            adapt(own(), 32, patch_size=wrong)
    network = adapt(own(), 32)
    with pytest.raises(PresetError, match="leave patch_size out"):
        network(torch.zeros(1, 3, 32, 32), patch_size=4)


def test_the_public_trace_holds_the_outputs_of_blocks_on_request(network, images):
    if not network.shows_tokens:
        pytest.skip("the blocks of this network are no modules that return tokens")
    _, expected = traced(network, images)
    with torch.no_grad(), vit_demo.Trace(network.blocks) as trace:
        plain(network, images)
    assert len(trace.tokens) == len(network.blocks)
    for found, tokens in zip(trace.tokens, expected.tokens[1:], strict=True):
        assert torch.equal(found, tokens)
    assert not any(block._forward_hooks for block in network.blocks)
    with pytest.raises(KeyError), vit_demo.Trace(network.blocks):
        raise KeyError
    assert not any(block._forward_hooks for block in network.blocks)
