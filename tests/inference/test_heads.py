"""Silent heads and their effects, against hooks by hand on other libraries' own modules in float64."""

from contextlib import ExitStack
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

import vit_demo
from vit_demo.errors import InputError

from ..trace.networks import plain, timm_vit
from .libraries import DEPTH, HEADS, SQUARE, WIDTH, case, skip_torchvision

__all__ = ["case"]


def by_hand(parts, pixels, heads=(), blocks=(), mlps=(), mean=False, keep=None) -> Tensor:
    """The logits, with hooks of torch on the library's own modules."""

    def replaced(x: Tensor) -> Tensor:
        return x.mean(1, keepdim=True).expand_as(x) if mean else torch.zeros_like(x)

    def project(block):
        def hook(_, args):
            x = args[0].clone()
            for head in (head for number, head in heads if number == block):
                part = slice(WIDTH * head, WIDTH * (head + 1))
                x[..., part] = replaced(x[..., part])
            return (x,)

        return hook

    with ExitStack() as hooks, torch.no_grad():
        for number, block in enumerate(parts.blocks):
            hooks.callback(parts.projections[number].register_forward_pre_hook(project(number)).remove)
            if number in mlps:
                hooks.callback(parts.mlps[number].register_forward_hook(lambda _, __, y: replaced(y)).remove)
            if number in blocks:
                silent = lambda _, args, y: args[0] + replaced(y - args[0])  # noqa: E731
                hooks.callback(block.register_forward_hook(silent).remove)
        if keep is not None:
            hooks.callback(parts.blocks[0].register_forward_pre_hook(lambda _, args: (args[0][:, keep],)).remove)
        return plain(parts.module, pixels.double())[0].float()


@pytest.mark.parametrize("replace", ["zero", "mean"])
@pytest.mark.parametrize(
    "silent",
    [
        {"heads": [(1, 0)]},
        {"heads": [(0, 2), (-1, 1)]},
        {"mlps": [1]},
        {"blocks": [0]},
        {"heads": [(0, 1)], "mlps": [2]},
    ],
    ids=str,
)
def test_what_is_silent_is_what_hooks_replace(case, silent, replace):
    parts, ex = case
    if "heads" in silent:
        skip_torchvision(parts)
    places = [(block % DEPTH, head) for block, head in silent.get("heads", [])]
    expected = by_hand(parts, ex.pixels, places, silent.get("blocks", ()), silent.get("mlps", ()), replace == "mean")
    found = ex.without(**silent, replace=replace)
    np.testing.assert_allclose(found.logits, expected, atol=1e-5)
    assert np.abs(found.logits - ex.logits).max() > 1e-6 and found.source is ex.source


def test_it_composes_with_dropped_patches(case):
    parts, ex = case
    skip_torchvision(parts)
    gone = [(0, 0), (1, 2), (3, 3)]
    prefix, columns = ex.trace.num_prefix_tokens, ex.grid[1]
    total = prefix + ex.grid[0] * columns
    keep = [i for i in range(total) if i < prefix or divmod(i - prefix, columns) not in gone]
    for mean in (False, True):
        expected = by_hand(parts, ex.pixels, [(1, 0), (2, 1)], mlps=[0], mean=mean, keep=keep)
        how = {"replace": "mean" if mean else "zero"}
        for found in (
            ex.drop_patches(gone).without(heads=[(1, 0), (2, 1)], mlps=[0], **how),
            ex.without(heads=[(2, 1)], **how).drop_patches(gone).without(heads=[(1, 0)], mlps=[0], **how),
        ):
            np.testing.assert_allclose(found.logits, expected, atol=1e-5)
            assert found.dropped == tuple(gone) and found.intervention.heads == ((1, 0), (2, 1))


def test_effects_are_those_of_a_loop_with_hooks(case):
    parts, ex = case
    skip_torchvision(parts)
    target, other = 3, 1
    for one, silent in ((ex, []), (ex.without(heads=[(1, 1)]), [(1, 1)])):
        whole = by_hand(parts, ex.pixels, silent)
        expected = np.zeros((3, DEPTH, HEADS))
        for block, head in product(range(DEPTH), range(HEADS)):
            logits = by_hand(parts, ex.pixels, {*silent, (block, head)})
            lost, log_lost = whole - logits, whole.log_softmax(0) - logits.log_softmax(0)
            expected[:, block, head] = lost[target], lost[target] - lost[other], log_lost[target]
        seen = []
        found = one.head_effects(target, batch_size=4, progress=lambda done, total: seen.append((done, total)))  # noqa: B023
        assert found.dtype == np.float32 and found.shape == (DEPTH, HEADS) and seen[-1] == (10, 10)
        np.testing.assert_allclose(found, expected[0], atol=1e-5)
        np.testing.assert_allclose(one.head_effects(target, other, batch_size=10**30), expected[1], atol=1e-5)
        np.testing.assert_allclose(one.head_effects(target, unit="log_probability"), expected[2], atol=1e-5)
    assert abs(found[1, 1]) < 1e-6
    whole = by_hand(parts, ex.pixels)
    lost = [whole - by_hand(parts, ex.pixels, [one], mean=True) for one in product(range(DEPTH), range(HEADS))]
    expected = torch.stack(lost)[:, target].reshape(DEPTH, HEADS)
    np.testing.assert_allclose(ex.head_effects(target, replace="mean"), expected, atol=1e-5)
    for one, replace in ((ex, "median"), (ex.without(heads=[(1, 1)]), "mean")):
        with pytest.raises(InputError, match="replace"):
            one.head_effects(target, replace=replace)


def test_tokens_of_another_result_are_put_in(case):
    parts, ex = case
    other = vit_demo.explore(parts.pixels.flip(2), parts.module)
    prefix, columns = ex.trace.num_prefix_tokens, ex.grid[1]
    np.testing.assert_allclose(ex.with_tokens(other, 1).logits, other.logits, atol=1e-5)
    kept = []
    with torch.no_grad():
        handle = parts.blocks[2].register_forward_pre_hook(lambda _, args: kept.append(args[0]))
        plain(parts.module, other.pixels.double())
        handle.remove()
        for patches in ([(1, 1), (3, 0)], [None, (0, 2)], [None]):
            places = [prefix + one[0] * columns + one[1] for one in patches if one is not None]
            places += range(prefix) if None in patches else ()

            def put(_, args):
                x = args[0].clone()
                x[:, places] = kept[0][:, places]  # noqa: B023
                return (x,)

            handle = parts.blocks[2].register_forward_pre_hook(put)
            expected = plain(parts.module, ex.pixels.double())[0].float()
            handle.remove()
            found = ex.with_tokens(other, -1, patches)
            np.testing.assert_allclose(found.logits, expected, atol=1e-5)
            assert found.to_dict()["without"]["tokens_before"] == [2]
    left = ex.drop_patches([(0, 2), (3, 1)]).with_tokens(other, 1, [(0, 1), (0, 3)])
    again = ex.with_tokens(other, 1, [(0, 1), (0, 3)]).drop_patches([(0, 2), (3, 1)])
    np.testing.assert_allclose(left.logits, again.logits, atol=1e-5)
    with pytest.raises(InputError, match="was dropped there"):
        ex.with_tokens(other.drop_patches([(0, 1)]), 1, [(0, 1)])


def test_everything_of_a_result_is_of_the_silent_pass(case, tmp_path):
    parts, ex = case
    silent = ex.without(heads=[(0, 1), (1, 2)], mlps=[1], replace="mean").with_tokens(ex.drop_patches([(0, 0)]), 2)
    tokens = silent.tokens(norm=False, prefix=True)
    assert np.abs(tokens - ex.tokens(norm=False, prefix=True)).max() > 1e-4 and not np.array_equal(
        silent.norms(), ex.norms()
    )
    lens = dict(silent.logit_lens()[-1])
    assert lens == pytest.approx(dict(silent.top(5)), abs=1e-5)
    for method in vit_demo.methods():
        assert np.isfinite(silent.heatmap(method)).all()
    assert not np.allclose(silent.heatmap("libra_fullgrad", 0), ex.heatmap("libra_fullgrad", 0), atol=1e-6)
    assert not np.allclose(silent.gradient(0), ex.gradient(0), atol=1e-6)
    assert silent.faithfulness().deletion[0] == pytest.approx(silent.probabilities.max(), abs=1e-4)
    about = silent.to_dict()["without"]
    assert about == {"heads": [[0, 1], [1, 2]], "blocks": [], "mlps": [1], "replace": "mean", "tokens_before": [2]}
    silent.save(tmp_path / "one")
    for found in (vit_demo.load_result(tmp_path / "one"), vit_demo.load_result(tmp_path / "one", parts.module)):
        assert found.to_dict() == silent.to_dict()
    np.testing.assert_allclose(found.relevance(), silent.relevance(), atol=1e-6)
    assert silent.without(heads=[(1, 2)], replace="mean") is silent and silent.without() is silent


def test_a_gradient_of_a_silent_head_is_zero():
    ex = vit_demo.explore(SQUARE, timm_vit()())
    alone = ex.without(heads=[(2, 0), (2, 1), (2, 2)])
    assert not alone.relevance().any() or np.allclose(alone.relevance(), alone.without().relevance())
    assert not alone.heatmap("norm_attention", block=2).any()


def test_few_heads_are_enough():
    ex = vit_demo.explore(SQUARE, timm_vit()())
    seen = []
    found = ex.enough_heads(progress=lambda done, total: seen.append((done, total)))
    assert found.is_minimal and 0 < len(found.heads) < DEPTH * HEADS and found.prediction == ex.logits.argmax()
    totals = {total for _, total in seen}
    assert len(totals) == 1 and max(done for done, _ in seen) <= min(totals) and seen == sorted(seen)
    all_heads = set(product(range(DEPTH), range(HEADS)))
    kept = ex.without(heads=all_heads - set(found.heads))
    assert kept.logits.argmax() == ex.logits.argmax()
    assert kept.probabilities[found.prediction] == pytest.approx(found.probability, abs=1e-5)
    for head in found.heads:
        if len(found.heads) > 1:
            fewer = ex.without(heads=(all_heads - set(found.heads)) | {head})
            assert fewer.logits.argmax() != ex.logits.argmax()
