"""What each part adds to a logit, against hooks by hand on other libraries' own modules in float64."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_demo
from vit_demo.errors import InputError, LabelError

from ..trace.networks import NETWORKS, own, plain
from .libraries import DEPTH, HEADS, SQUARE, WIDTH, case, skip_torchvision

__all__ = ["case"]


def test_contributions_are_what_hooks_see_and_sum_to_the_logit(case):
    parts, ex = case
    skip_torchvision(parts)
    kept = {name: [] for name in ("heads", "before", "after", "mlp", "norm")}
    with ExitStack() as hooks, torch.no_grad():

        def note(name):
            return lambda *given: kept[name].append(given[-1][0] if isinstance(given[-1], tuple) else given[-1])

        for block, projection in zip(parts.blocks, parts.projections, strict=True):
            hooks.callback(projection.register_forward_pre_hook(note("heads")).remove)
            hooks.callback(block.register_forward_pre_hook(note("before")).remove)
            hooks.callback(block.register_forward_hook(note("after")).remove)
        hooks.callback(parts.norm.register_forward_pre_hook(note("norm")).remove)
        logits = plain(parts.module, ex.pixels.double())[0]
    target, other, prefix = 2, 4, ex.trace.num_prefix_tokens
    for against in (None, other):
        weight = parts.head.weight[target] - (0 if against is None else parts.head.weight[against])
        normed = kept["norm"][0]
        normed = normed[:, 0] if normed.dim() == 3 else normed
        deviation = (normed.var(1, unbiased=False) + parts.norm.eps).sqrt()

        def share(x: Tensor) -> float:
            read = x[:, 0] if kept["norm"][0].dim() == 3 else x[:, prefix:].mean(1)
            centred = (read - read.mean(1, keepdim=True)) / deviation  # noqa: B023
            return float(((centred * parts.norm.weight) @ weight).sum().detach())  # noqa: B023

        found = ex.contributions(target, against)
        assert found.heads.dtype == np.float32 and found.patches.shape == (DEPTH, HEADS, *ex.grid)
        biases = 0.0
        for block, heads in enumerate(kept["heads"]):
            scale = getattr(getattr(parts.blocks[block], "ls1", None), "gamma", 1.0)
            w, b = parts.projections[block].weight.T, parts.projections[block].bias
            biases += share((b * scale).expand_as(kept["before"][0]))
            attended = heads @ w * scale
            mlp = share(kept["after"][block] - kept["before"][block] - attended - b * scale)
            assert found.mlps[block] == pytest.approx(mlp, abs=1e-5)
            for head in range(HEADS):
                part = slice(WIDTH * head, WIDTH * (head + 1))
                expected = share(heads[..., part] @ w[part] * scale)
                assert found.heads[block, head] == pytest.approx(expected, abs=1e-5)
                attention, v = ex.trace.attention(block)[0, head].double(), ex.trace.v[block][0, head].double()
                from_patches = [
                    share(((attention[:, j, None] * v[j]) @ w[part] * scale)[None]) for j in range(prefix, len(v))
                ]
                np.testing.assert_allclose(found.patches[block, head].ravel(), from_patches, atol=1e-5)
        assert found.tokens == pytest.approx(share(kept["before"][0]), abs=1e-5)
        of_head = parts.head.bias[target] - (0 if against is None else parts.head.bias[against])
        constant = float(of_head + parts.norm.bias @ weight)
        assert found.bias == pytest.approx(biases + constant, abs=1e-5)
        assert found.logit == pytest.approx(
            float(logits[target] - (0 if against is None else logits[against])), abs=1e-4
        )


@pytest.mark.parametrize("name", NETWORKS)
def test_contributions_sum_to_the_logit_of_any_network_or_it_says_why_not(name):
    ex = vit_demo.explore(SQUARE, NETWORKS[name]())
    if not ex.labels:
        with pytest.raises(LabelError, match="no classes"):
            ex.contributions()
        return
    for one in (ex, ex.without(heads=[(0, 1), (2, 0)], replace="mean"), ex.drop_patches([(0, 0), (2, 1)])):
        try:
            found = one.contributions()
        except InputError as error:
            assert name in ("timm siglip", "timm pooling beside a class token", "vit-pytorch simple"), str(error)
            assert str(error).endswith(".") and "\n" not in str(error)
            return
        assert found.logit == pytest.approx(float(one.logits.max()), abs=1e-4)
        in_patches = found.patches.sum((2, 3))
        if not one.trace.num_prefix_tokens:
            np.testing.assert_allclose(in_patches, found.heads, atol=1e-5)
    silent = ex.without(heads=[(0, 1)], blocks=[1], mlps=[2]).contributions()
    assert silent.heads[0, 1] == 0 and not silent.heads[1].any() and abs(silent.mlps[[1, 2]]).max() < 1e-5


def test_what_norms_after_its_sum_is_refused():
    class PostNorm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = own().layers[0]
            self.after = nn.LayerNorm(24)

        def forward(self, x: Tensor) -> Tensor:
            return self.after(self.inner(x))

    module = own()
    module.layers = nn.ModuleList([PostNorm() for _ in range(3)])
    ex = vit_demo.explore(SQUARE, module.eval())
    for ask in (lambda: ex.contributions(), lambda: ex.without(mlps=[0])):
        with pytest.raises(InputError, match="do more than to add to their tokens"):
            ask()
    assert ex.without(heads=[(0, 0)], blocks=[1]).logits.shape == ex.logits.shape
