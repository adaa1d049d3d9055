"""What each part adds to a logit, against hooks by hand on other libraries' own modules in float64."""

import re
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

import vit_demo
from vit_demo.errors import InputError, LabelError

from ..trace.networks import NETWORKS, own, plain, timm_vit
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


class Beside(nn.Module):
    """A linear map with an adapter of low rank beside it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.low = base, nn.Sequential(nn.Linear(24, 2, bias=False), nn.Linear(2, 24, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.low(x)


class Folded(nn.Conv1d):
    """A linear map as a convolution."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mT).mT


def factors(layer: nn.Linear) -> nn.Module:
    """The map in two parts, with a smaller rank."""
    u, s, v = torch.linalg.svd(layer.weight.detach())
    first, second = nn.Linear(24, 8, bias=False), nn.Linear(8, 24)
    first.weight.data, second.weight.data = v[:8], u[:, :8] * s[:8]
    return nn.Sequential(first, second)


PROJECTIONS = {
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
    "pruned by rows, and its bias": lambda layer: prune.random_structured(
        prune.l1_unstructured(layer, "bias", 0.5), "weight", 0.3, dim=0
    ),
    "weight norm": weight_norm,
    "spectral norm": spectral_norm,
    "an adapter": Beside,
    "in two parts": factors,
    "a convolution": lambda layer: Folded(24, 24, 1),
    "batch normalization": lambda layer: nn.Sequential(
        layer, nn.Unflatten(1, (1, -1)), nn.BatchNorm2d(1), nn.Flatten(1, 2)
    ),
}


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_linear_projection_of_any_kind_is_asked(name):
    torch.manual_seed(0)
    module, read, kept = timm_vit(init_values=0.5)(), {}, {}
    for block in module.blocks[1:]:
        block.attn.proj = PROJECTIONS[name](block.attn.proj)
    ex = vit_demo.explore(SQUARE, module.eval())
    for one in (
        ex,
        ex.without(heads=[(0, 1), (2, 0)], replace="mean"),
        ex.without(heads=[(1, 1)], blocks=[2]),
        ex.drop_patches([(0, 0), (2, 1)]),
    ):
        assert one.contributions(3).logit == pytest.approx(float(one.logits[3]), abs=1e-5)
    with ExitStack() as hooks, torch.no_grad():
        hooks.callback(module.norm.register_forward_pre_hook(lambda _, args: read.update(last=args[0][:, 0])).remove)
        for number, block in enumerate(module.blocks):
            keep = lambda _, args, number=number: kept.update({number: args[0]})  # noqa: E731
            hooks.callback(block.attn.proj.register_forward_pre_hook(keep).remove)
        module(SQUARE[None])
    deviation = (read["last"].var(1, unbiased=False) + module.norm.eps).sqrt()
    found, bias = ex.contributions(3), 0.0
    for number, block in enumerate(module.blocks):

        def share(heads: Tensor, block: nn.Module = block) -> float:
            with torch.no_grad():
                added = (block.attn.proj(heads) * block.ls1.gamma)[:, 0]
                return float((added - added.mean()) / deviation @ (module.norm.weight * module.head.weight[3]))

        nothing = share(torch.zeros_like(kept[number]))
        for head in range(HEADS):
            alone = torch.zeros_like(kept[number])
            alone[..., WIDTH * head : WIDTH * (head + 1)] = kept[number][..., WIDTH * head : WIDTH * (head + 1)]
            assert found.heads[number, head] == pytest.approx(share(alone) - nothing, abs=1e-5)
        bias += nothing
    constant = float((module.head.bias[3] + module.norm.bias @ module.head.weight[3]).detach())
    assert found.bias == pytest.approx(bias + constant, abs=1e-5)


@pytest.mark.parametrize("name", ["timm relpos", "timm beit", "torchvision", "transformers Dinov2WithRegisters"])
def test_pruned_networks_of_any_library_have_contributions(name):
    module = NETWORKS[name]()
    for path, layer in module.named_modules():
        if re.search(r"\.(proj|out_proj|o_proj|attention\.output\.dense)$", path) and isinstance(layer, nn.Linear):
            prune.l1_unstructured(layer, "weight", 0.5)
    ex = vit_demo.explore(SQUARE, module)
    for one in (ex, ex.drop_patches([(0, 0), (2, 1)])):
        assert one.contributions(3).logit == pytest.approx(float(one.logits[3]), abs=1e-5)


@pytest.mark.parametrize("end", [nn.ReLU(), nn.GELU(), nn.Sequential(nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 24))])
def test_a_projection_that_is_not_linear_is_refused(end):
    module = timm_vit()()
    module.blocks[1].attn.proj = nn.Sequential(module.blocks[1].attn.proj, end)
    with pytest.raises(InputError, match="not what one linear map gives"):
        vit_demo.explore(SQUARE, module).contributions()


def test_a_changed_projection_beside_an_mlp_that_reads_the_same_tokens_is_refused():
    """What its bias adds could not be told from what the MLP adds."""
    module = timm_vit(block_fn=pytest.importorskip("timm").models.vision_transformer.ParallelThingsBlock, depth=2)()
    assert vit_demo.explore(SQUARE, module).contributions(3).heads.all()
    for block in module.blocks:
        for branch in block.attns:
            branch.attn.proj = Beside(branch.attn.proj)
    with pytest.raises(InputError, match="not what one linear map gives"):
        vit_demo.explore(SQUARE, module).contributions()
