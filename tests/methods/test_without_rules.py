"""Operations without a rule, attention without a graph, and checkpoints: the same map, or the reason why not."""

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from vit_demo.errors import PresetError
from vit_demo.methods import attnlrp, grad_cam, legrad, libra_fullgrad, naclip, relevance
from vit_demo.methods.targets import input_gradient
from vit_demo.trace import adapt

from .written_out import EPS, HEADS, METHODS, WIDTH, Function, check, pair

pytestmark = pytest.mark.filterwarnings("error")


def baddbmm(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=8**-0.5)
    return torch.bmm(scores.softmax(-1), v).unflatten(0, (-1, HEADS))


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        y = ctx.saved_tensors[0]
        return y * (gradient - (gradient * y).sum(-1, keepdim=True))


class WholeAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v)
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            return torch.autograd.grad(F.scaled_dot_product_attention(*inputs), inputs, gradient)


class SwishOfOneTensor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        s = torch.sigmoid(ctx.saved_tensors[0])
        return gradient * s * (1 + ctx.saved_tensors[0] * (1 - s))


def test_a_softmax_that_is_an_autograd_function_changes_no_map() -> None:
    check(*pair("attend", None, lambda q, k, v: Softmax.apply(q @ k.mT * 8**-0.5) @ v), [*METHODS, legrad, grad_cam])


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_changes_no_map(use_reentrant: bool) -> None:
    run, methods = partial(checkpoint, use_reentrant=use_reentrant), [*METHODS, legrad, grad_cam, input_gradient]
    check(*pair("run", None, lambda block, x: run(block, x)), methods)
    check(*pair("act", None, lambda x: run(F.gelu, x)), methods)
    x = torch.ones(1, requires_grad=True)
    checkpoint(torch.exp, x, use_reentrant=True).backward()  # as before
    assert "Checkpoint" in checkpoint(torch.exp, x, use_reentrant=True).grad_fn.name() and x.grad > 2.7


@torch.no_grad()
def without_gradients(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("method", [libra_fullgrad, attnlrp, relevance, legrad])
@pytest.mark.parametrize("attend", [WholeAttention.apply, without_gradients])
def test_attention_without_a_graph_is_refused_by_what_needs_one(method: Function, attend: Function) -> None:
    _, other = pair("attend", None, attend)
    with pytest.raises(PresetError, match="torch records no gradients"):
        method(adapt(other, 32), torch.randn(1, 3, 32, 32), 3)


NO_RULE: list[tuple[str, Function, str]] = [
    ("act", SwishOfOneTensor.apply, "SwishOfOneTensor"),
    ("act", F.softplus, "Softplus"),
    ("act", lambda x: F.glu(x.repeat(1, 1, 2)), "Glu"),
    ("act", torch.sigmoid, "Sigmoid"),
    ("act", lambda x: x.sin(), "Sin"),
    ("act", lambda x: torch.ops.aten.gelu(x), "Gelu"),
    ("act", lambda x: x.clamp(-1, 1), "Clamp"),
    ("act", lambda x: x.clone().mul_(x + 1), "Mul"),
    ("norm", lambda x, w, b: F.group_norm(x.flatten(0, 1), 1).view_as(x) * w + b, "NativeGroupNorm"),
    ("norm", lambda x, w, b: torch.native_layer_norm(x, (WIDTH,), w, b, EPS)[0], "NativeLayerNorm"),
]


UNUSUAL: list[tuple[Function, str]] = [
    (lambda x, w, b: torch.addmm(b, x.flatten(0, 1), w.t()).view(*x.shape[:2], -1), "Addmm"),
    (lambda x, w, b: torch.tensordot(x, w, ([2], [1])) + b, "Mm"),
    (lambda x, w, b: F.conv1d(x.transpose(1, 2), w[:, :, None], b).transpose(1, 2), "Convolution"),
    (lambda x, w, b: torch.bmm(x, w.T.expand(len(x), -1, -1)) + b, "Bmm"),
    (lambda x, w, b: torch.einsum("bnhi,hio->bno", x.unflatten(2, (2, -1)), w.T.unflatten(0, (2, -1))) + b, "Bmm"),
]


@pytest.mark.parametrize("number", range(len(UNUSUAL)))
def test_attnlrp_alone_warns_of_an_unusual_linear_map(number: int) -> None:
    written, name = UNUSUAL[number]
    reference, other = pair("linear", None, written)
    check(reference, other, [libra_fullgrad, relevance, naclip])
    with pytest.warns(UserWarning, match=f"no rule for the operation {name}"):
        attnlrp(adapt(other, 32), torch.randn(1, 3, 32, 32), 3)


@pytest.mark.parametrize("number", range(len(NO_RULE)))
def test_a_warning_names_the_operation_without_a_rule(number: int) -> None:
    kind, written, name = NO_RULE[number]
    _, other = pair(kind, None, written)
    images, network = torch.randn(1, 3, 32, 32), adapt(other, 32)
    for method in (libra_fullgrad, attnlrp):
        with pytest.warns(UserWarning, match=f"no rule for the operation {name} of this network"):
            method(network, images, 3)
    relevance(network, images, 3)  # which has no rules


@pytest.mark.parametrize(
    "attend", [baddbmm, lambda q, k, v: (q[:, :, :, None] * k[:, :, None] * 8**-0.5).sum(-1).softmax(-1) @ v]
)
def test_naclip_refuses_keys_that_are_not_seen(attend: Function) -> None:
    reference, other = pair("attend", None, attend)
    check(reference, other, [libra_fullgrad, relevance])
    with pytest.raises(PresetError, match="keys of this network are not seen"):
        naclip(adapt(other, 32), torch.randn(1, 3, 32, 32), 3)
