"""What an exploration computes later: maps, tests of maps, the logit lens, and results without some patches."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from vit_demo import features, methods, metrics
from vit_demo.errors import InputError, LabelError


@pytest.mark.parametrize("method", methods.METHODS)
def test_every_method_by_name_is_that_of_the_network(tiny, photo, method):
    engine, model, _ = tiny
    ex, specific = engine.explore(photo, "photos-tiny", patch_size=4), methods.METHODS[method].class_specific
    for label, target in ((None, int(ex.logits.argmax())), ("c", 2))[: 1 + specific]:
        wanted = methods.METHODS[method].compute(model, ex.pixels, target, patch_size=4, kept_patches=None)[0]
        found = ex.heatmap(method, label)
        assert found.shape == (8, 8) and found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert ex.overlay(found).size == ex.image.size
    if specific:
        assert np.abs(ex.heatmap(method, "a") - ex.heatmap(method, 1)).max() > 1e-6
    else:
        with pytest.warns(UserWarning, match="does not depend on a class"):
            np.testing.assert_array_equal(ex.heatmap(method, "c"), ex.heatmap(method))


def test_the_logit_lens_lists_the_predictions_of_each_block(tiny, photo):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    rankings = ex.logit_lens()
    wanted = features.logit_lens(model, ex.pixels, patch_size=8)[0].softmax(1)
    assert len(rankings) == 4 and all(len(ranking) == 3 for ranking in rankings)
    for ranking, row in zip(rankings, wanted, strict=True):
        assert [p for _, p in ranking] == sorted((p for _, p in ranking), reverse=True)
        assert {label: pytest.approx(p, abs=1e-5) for label, p in ranking} == dict(
            zip("abc", row.tolist(), strict=True)
        )
    assert rankings[-1] == [(label, pytest.approx(p, abs=1e-5)) for label, p in ex.top(3)]


def test_dropped_patches_leave_the_sequence_and_every_map_keeps_its_grid(tiny, photo):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    gone = [(0, 1), (2, 2), (3, 0)]
    left = ex.drop_patches(gone[:1]).drop_patches(gone[1:])
    kept_patches = torch.tensor([[i for i in range(16) if divmod(i, 4) not in gone]])
    with torch.no_grad():
        expected = model(ex.pixels, patch_size=8, kept_patches=kept_patches)[0]
    np.testing.assert_allclose(left.logits, expected, atol=1e-5)
    assert left.dropped == tuple(gone) and left.grid == (4, 4) and ex.dropped == ()
    for method, found in methods.METHODS.items():
        values = left.heatmap(method, "b" if found.class_specific else None)
        assert all(values[at] == 0 for at in gone) and np.count_nonzero(values) > (3 if method == "grad_cam" else 6)
    wanted = methods.relevance(model, ex.pixels, 1, patch_size=8, kept_patches=kept_patches)[0]
    np.testing.assert_allclose(left.relevance("b"), wanted, atol=1e-6)
    maps = left.attention_maps(query=(3, 3))
    np.testing.assert_allclose(maps[:, 0], [left.attention(block, 0, (3, 3)) for block in range(3)], atol=1e-6)
    if model.config.pool == "mean":
        np.testing.assert_allclose(maps.sum((2, 3)), 1, atol=1e-5)
    # Who looks at a patch is read at that patch's own place: its row holds what it gives to itself.
    own = left.attention(-1, None, (3, 3), "to")[3, 3]
    assert own == pytest.approx(left.attention(-1, None, (3, 3))[3, 3], abs=1e-6)
    assert ex.drop_patches([]) is ex and left.drop_patches(gone) is left


@pytest.mark.parametrize("baseline", ["mean", "blur", "black"])
def test_faithfulness_by_name_or_of_a_map(tiny, photo, baseline):
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    found = ex.faithfulness("relevance", steps=4, label="b", baseline=baseline, seeds=2)
    empty = {"mean": torch.zeros(1), "black": torch.full((1,), -1.0), "blur": metrics.blur(ex.pixels, 32)}[baseline]
    wanted = metrics.faithfulness(
        model, ex.pixels, 1, torch.from_numpy(ex.relevance("b")), empty, steps=4, seeds=2, patch_size=8
    )
    np.testing.assert_allclose(found.deletion, wanted.deletion, atol=1e-5)
    np.testing.assert_allclose(found.random_insertion, wanted.random_insertion, atol=1e-5)
    own = ex.faithfulness(ex.relevance("b"), steps=4, label="b", baseline=baseline, seeds=2)
    assert own.insertion_area == pytest.approx(found.insertion_area)
    assert len(ex.randomization("rollout")) == 5


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda ex: ex.attention(block=3), InputError, "no block 3"),
        (lambda ex: ex.attention(head=2), InputError, "no head 2"),
        (lambda ex: ex.attention(query=(4, 0)), InputError, "no patch"),
        (lambda ex: ex.attention(query=(0, -1)), InputError, "no patch"),
        (lambda ex: ex.attention(direction="up"), InputError, "direction"),
        (lambda ex: ex.drop_patches([(4, 0)]), InputError, "no patch"),
        (lambda ex: ex.drop_patches([divmod(i, 4) for i in range(16)]), InputError, "must stay"),
        (lambda ex: ex.drop_patches([(1, 1)]).attention(query=(1, 1)), InputError, "was dropped"),
        (lambda ex: ex.relevance("dog"), LabelError, "no class 'dog'"),
        (lambda ex: ex.relevance(3), LabelError, "no class 3"),
        (lambda ex: ex.heatmap("occlusion", -1), LabelError, "no class -1"),
        (lambda ex: ex.heatmap("magic"), ValueError, "no method 'magic'"),
        (lambda ex: ex.faithfulness("magic"), ValueError, "no method 'magic'"),
        (lambda ex: ex.faithfulness("rollout", baseline="pink"), ValueError, "no baseline 'pink'"),
        (lambda ex: ex.faithfulness(np.zeros((2, 2))), ValueError, r"the shape \(4, 4\)"),
        (lambda ex: ex.heatmap("norm_attention", block=3), ValueError, "no block 3"),
        (lambda ex: ex.heatmap("rollout", against="a"), InputError, "rollout does not compare two classes"),
        (lambda ex: ex.heatmap("relevance", "a", against="dog"), LabelError, "no class 'dog'"),
        (lambda ex: ex.heatmap("relevance", "a", against=0), LabelError, "'a' cannot be compared with itself"),
        (lambda ex: ex.faithfulness("rollout", label="a", against="a"), LabelError, "compared with itself"),
    ],
)
def test_invalid_requests_are_refused_in_one_sentence(tiny, photo, ask, error, words):
    engine, _, _ = tiny
    with pytest.raises(error, match=words):
        ask(engine.explore(photo, "photos-tiny", patch_size=8))


def test_one_class_rather_than_another(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    found = ex.heatmap("libra_fullgrad", "a", against="b")
    np.testing.assert_allclose(found, ex.heatmap("libra_fullgrad", 0) - ex.heatmap("libra_fullgrad", 1), atol=1e-5)
    curves = ex.faithfulness("libra_fullgrad", steps=4, label="a", against="b", seeds=1)
    assert curves.deletion[0] == pytest.approx(ex.logits[0] - ex.logits[1], abs=1e-5)
    np.testing.assert_array_equal(curves.deletion, ex.faithfulness(found, 4, "a", against="b", seeds=1).deletion)
    assert ex.faithfulness("rollout", steps=4, label="a", against="b").insertion[-1] == pytest.approx(
        curves.deletion[0]
    )


def test_how_few_patches_are_enough_and_how_few_are_needed(tiny, photo):
    engine, _, _ = tiny
    ex, reported = engine.explore(photo, "photos-tiny", patch_size=8), []
    label, probability = ex.top(1)[0]
    found = ex.enough(progress=lambda *counts: reported.append(counts))
    everything = [(row, col) for row in range(4) for col in range(4)]
    alone = ex.drop_patches(set(everything) - set(found.patches))
    assert alone.probabilities[ex.target()] == pytest.approx(found.probability, abs=1e-5)
    assert found.probability >= 0.9 * probability and reported[-1] == (found.passes, 300)
    other = ex.enough(without=found.patches)
    assert other is None or not set(other.patches) & set(found.patches)
    needed = ex.needed()
    if needed is not None:
        assert ex.drop_patches(needed.patches).top(1)[0][0] == ex.labels[needed.prediction] != label
    least = ex.labels[int(ex.probabilities.argmin())]
    for ask in (lambda: ex.needed(least), lambda: ex.enough(least, share=None)):
        with pytest.raises(InputError, match=f"{least} is not the predicted class"):
            ask()
    sure = replace(ex, logits=np.float32([9, 0, 0]))
    for ask in (lambda: sure.needed("b", 0.5), lambda: sure.enough("b")):
        with pytest.raises(InputError, match=r"b has 0\.0% here, .*choose a class of 10% or more"):
            ask()
    assert ex.enough(least) is not None, "a class that is not predicted, but probable, can lose something"
    with pytest.raises(InputError, match="no patch"):
        ex.enough(without=[(4, 0)])


def test_unknown_options_are_refused(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    with pytest.raises(InputError, match="occlusion has no option 'budget'"):
        ex.heatmap("occlusion", budget=3)
    np.testing.assert_array_equal(ex.heatmap("attention", block=0, head=1), ex.attention(0, 1))
    assert ex.heatmap("local_surrogate", budget=8, seed=1).shape == (4, 4)


def test_randomization_compares_the_patches_that_are_left(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    one_left = ex.drop_patches([divmod(i, 4) for i in range(15)])
    assert one_left.randomization("attention") == [1.0] + [0.0] * 4, "one value has no order"
    left = ex.drop_patches([divmod(i, 4) for i in range(12)])
    for value in left.randomization("attention")[1:]:
        # Spearman's correlation of n ranks without ties is 1 - 6 S / (n (n² - 1)), where S is even.
        squares = (1 - value) * 4 * 15 / 6
        assert squares == pytest.approx(2 * round(squares / 2), abs=1e-6)


def test_maps_do_not_depend_on_the_callers_autocast(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    expected = [ex.attention(), ex.attention(direction="to", query=(1, 1)), ex.rollout(), ex.attention_maps()]
    with torch.autocast("cpu", torch.bfloat16):
        found = [ex.attention(), ex.attention(direction="to", query=(1, 1)), ex.rollout(), ex.attention_maps()]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
