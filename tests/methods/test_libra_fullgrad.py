"""Libra FullGrad+ against the network with attention, deviations and gates frozen, where a share is a difference."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tests.trace.networks import NETWORKS, eva, timm_network
from vit_demo.methods import attnlrp, libra_fullgrad
from vit_demo.methods.gradient_rules import ModifiedBackward
from vit_demo.methods.libra_fullgrad import POOLING
from vit_demo.trace import TracedViT, adapt
from vit_demo.trace.attention_mode import SOFTMAX
from vit_demo.trace.outputs import logits_of

from .test_relevance import SHAPES

Network = Callable[..., TracedViT]
WRITTEN_ELSEWHERE = ("eva02", "torchvision", "simple", "Siglip")
"""Networks with a product of two branches, with attention that the frozen pass does not see, or without tokens."""

pytestmark = pytest.mark.filterwarnings("ignore")


class Frozen(TorchFunctionMode):
    """Keeps attention, deviations and gates of its first pass; in later ones, of any batch, they are constants."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []
        self.later: Iterator[Tensor] | None = None
        self.values: dict[int, Tensor] = {}  # factors of the values ``[B, N]``, by the number of the attention
        self.count = 0

    def constant(self, value: Tensor) -> Tensor:
        if self.later is not None:
            return next(self.later)
        self.kept.append(value)
        return value

    @contextmanager
    def again(self) -> Iterator[None]:
        self.later, self.count = iter(self.kept), 0
        with self:
            yield
        assert next(self.later, None) is None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self.attention(*args, **kwargs)
        if func is F.layer_norm:
            x, shape, weight, bias, *eps = *args, *kwargs.values()
            axes = tuple(range(-len(shape), 0))
            variance = x.var(axes, unbiased=False, keepdim=True) + (eps[0] if eps else 1e-5)
            normal = (x - x.mean(axes, keepdim=True)) / self.constant(variance.sqrt())
            return normal if weight is None else normal * weight + bias
        if func in (F.gelu, F.silu):
            return args[0] * self.constant(func(*args, **kwargs) / args[0])
        if func is torch.sigmoid or (func in SOFTMAX and args[0].dim() == 4):
            return self.constant(func(*args, **kwargs))
        return func(*args, **kwargs)

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        if self.count in self.values:
            v = v * self.values[self.count][:, None, :, None]
        self.count += 1
        return self.constant((scores if attn_mask is None else scores + attn_mask).softmax(-1)) @ v


@torch.no_grad()
def by_differences(model: Any, blocks: list[nn.Module], images: Tensor, target: int, against: int | None) -> Tensor:
    """By how much the frozen score rises where a token, or its values, are doubled: ``[2, N]``, summed over blocks."""

    def score() -> Tensor:
        logits = logits_of(model(batch))
        return logits[:, target] - (0 if against is None else logits[:, against])

    frozen, batch, of_tokens, of_values = Frozen(), images, [], []
    lengths: list[int] = []
    handle = blocks[0].register_forward_pre_hook(lambda _, args: lengths.append(args[0].shape[1]))
    with frozen:
        base = score()
    handle.remove()
    doubled = 1 + torch.eye(lengths[0], dtype=images.dtype)  # sample j has token j twice
    batch = images.expand(lengths[0], -1, -1, -1)
    for number, block in enumerate(blocks):
        frozen.values = {number: doubled}
        with frozen.again():
            of_values.append(score() - base)
        frozen.values = {}
        handle = block.register_forward_pre_hook(lambda _, args: (args[0] * doubled[:, :, None], *args[1:]))
        with frozen.again():
            of_tokens.append(score() - base)
        handle.remove()
    return torch.stack([torch.stack(of_tokens).sum(0), torch.stack(of_values).sum(0)])


@pytest.fixture(params=["whole matrices", "chunks"])
def _of_short_and_of_long_sequences(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "chunks":
        monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 0)


@pytest.mark.parametrize("fields", SHAPES, ids=str)
@pytest.mark.parametrize("against", [None, 1])
def test_a_share_is_the_difference_that_a_token_makes(
    network: Network, fields, against, _of_short_and_of_long_sequences
) -> None:
    model, images = network(**fields), torch.randn(2, 3, 8, 24)
    targets = torch.tensor([3, 0])
    found, of_tokens = (
        libra_fullgrad(model, images, targets, against=against, with_values=with_values)
        for with_values in (True, False)
    )
    model, prefix = model.double(), model.config.num_prefix_tokens
    for sample, target in enumerate((3, 0)):
        one = images[sample : sample + 1].double()
        expected = by_differences(model, list(model.blocks), one, target, against)[:, prefix:].reshape(2, 2, 6).float()
        assert expected[0].std() > 1e-2 and expected[1].std() > 1e-2
        torch.testing.assert_close(of_tokens[sample], expected[0] / 3, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found[sample], expected[0] / 3 + expected[1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in NETWORKS if not any(word in name for word in WRITTEN_ELSEWHERE)])
def test_networks_of_other_libraries_have_the_same_rules(name: str) -> None:
    network = adapt(NETWORKS[name](), 32)
    images = torch.randn(1, 3, 32, 32)
    is_written_out = name in ("timm relpos", "transformers Beit")
    found = libra_fullgrad(network, images, 3, with_values=not is_written_out)[0].flatten()
    module = network.module.double()
    tokens, values = by_differences(module, network.blocks, images.double(), 3, None)[:, -16:].float()
    expected = tokens / 3 + (0 if is_written_out else values)
    assert expected.std() > 1e-4
    torch.testing.assert_close(found, expected, atol=1e-3 * float(expected.abs().max()), rtol=1e-3)


def without_biases(module: nn.Module) -> nn.Module:
    for name, parameter in module.named_parameters():
        if "bias" in name or name.endswith("beta"):
            parameter.data.zero_()
    return module


@pytest.mark.parametrize("kind", ["ours", "SwiGLU", "attention pooling"])
def test_without_biases_the_shares_of_every_block_make_the_score(network: Network, kind: str) -> None:
    if kind == "ours":
        model: Any = without_biases(network(class_token=False, pool="mean"))
        images = torch.randn(1, 3, 16, 16)
    else:
        options = {"use_rot_pos_emb": True, "swiglu_mlp": True, "qkv_fused": False, "class_token": False}
        made = eva(**options, global_pool="avg")() if kind == "SwiGLU" else None
        model = adapt(without_biases(made or pooled()), 32)
        images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        score = model(images)[:, 2]
    found = libra_fullgrad(model, images, 2, with_values=False).sum((1, 2))
    torch.testing.assert_close(found, score, atol=1e-5, rtol=1e-4)


def pooled() -> nn.Module:
    """With a query of its own that is a bias as well: zeroed, all tokens count alike, so it is made again."""
    return timm_network("vision_transformer.VisionTransformer", global_pool="map", class_token=False)


def test_the_pass_stays_as_it_is_and_so_does_the_network() -> None:
    x, weight = torch.randn(2, 5, 8), torch.randn(8)
    functions = [
        lambda: F.layer_norm(x, (8,), weight, weight, eps=1e-3),
        lambda: F.rms_norm(x, (8,), weight, eps=1e-3),
        lambda: F.rms_norm(x, (8,)),
        lambda: F.gelu(x, approximate="tanh"),
        lambda: x * torch.sigmoid(1.702 * x),
        lambda: F.silu(x) * x.flip(2),
    ]
    expected = [function() for function in functions]
    with ModifiedBackward({}):
        found = [function() for function in functions]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_weights_of_pooling_are_constants_written_out_or_not() -> None:
    q, k, v = torch.randn(1, 2, 1, 4, requires_grad=True), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    with ModifiedBackward(POOLING):
        outputs = (q @ k.mT).softmax(-1) @ v, F.scaled_dot_product_attention(q, k, v)
        scores = torch.softmax(q[0, 0], dim=1)
    assert not any(output.requires_grad for output in outputs) and scores.requires_grad


def test_an_rms_norm_divides_by_a_constant() -> None:
    x, weight = torch.randn(3, 8, requires_grad=True), torch.randn(8)
    with ModifiedBackward({}):
        y = F.rms_norm(x, (8,), weight)
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope * x, y)


@pytest.mark.parametrize("method", [libra_fullgrad, attnlrp])
def test_dropping_patches_by_a_mask_gives_the_map_of_leaving_them_out(method: Callable[..., Tensor]) -> None:
    network, images = adapt(NETWORKS["transformers Dinov2"](), 32), torch.randn(1, 3, 32, 32)
    kept = torch.tensor([[0, 3, 5, 6, 9, 15]])
    left_out = method(network, images, 3, kept_patches=kept)
    network.leaves_out = False
    found = method(network, images, 3, kept_patches=kept)
    torch.testing.assert_close(found, left_out, atol=1e-5, rtol=1e-4)
    assert found.flatten().nonzero()[:, 0].tolist() == kept[0].tolist()


@pytest.mark.parametrize("method", [libra_fullgrad, attnlrp])
def test_half_precision_gives_float32_maps_near_the_exact_ones(network: Network, method) -> None:
    model, images = network(), torch.randn(1, 3, 16, 16)
    exact = method(model, images, 1)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(method(model, images, 1), exact)
    found = method(model.bfloat16(), images.bfloat16(), 1)
    assert found.dtype == torch.float32 and torch.corrcoef(torch.stack([found.flatten(), exact.flatten()]))[0, 1] > 0.95
