"""What a result shows of its tokens, against numpy on tokens that a plain loop over the network gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo import features
from vit_demo.errors import InputError, LabelError
from vit_demo.inference import patch_features
from vit_demo.inference.cache import ByteCache
from vit_demo.web.catalog.example_digits import example_picture

from ..trace.networks import own, randomize


@pytest.fixture(scope="module")
def three():
    return vit_demo.explore(example_picture(3), "digits-tiny", patch_size=4)


@pytest.fixture(scope="module")
def eight():
    return vit_demo.explore(example_picture(8), "digits-tiny", patch_size=4)


def tokens_after(ex, block):
    """The normed tokens ``[49, D]`` and their lengths before the norm, by a plain loop."""
    model = vit_demo.load("digits-tiny", patch_size=4)
    with torch.inference_mode():
        x = model.embed(ex.pixels, (7, 7), 4)
        for each in list(model.blocks)[: block + 1]:
            x = each(x)
        return model.norm(x)[0, 1:].double().numpy(), x[0, 1:].norm(dim=1).numpy()


def test_tokens_of_several_pictures_are_those_of_a_plain_loop(three, eight):
    results = vit_demo.explore_batch([example_picture(3), example_picture(8)], "digits-tiny", patch_size=4)
    for result, expected in zip(results, (three, eight), strict=True):
        np.testing.assert_allclose(result.tokens(2), tokens_after(expected, 2)[0], atol=1e-4)
        np.testing.assert_array_equal(result.tokens(), result.tokens(5))
    assert three.drop_patches([(0, 0), (3, 3)]).tokens().shape == (47, three.tokens().shape[1])


def test_similarity_is_the_cosine_of_the_tokens(three, eight):
    own, others = tokens_after(three, 2)[0], tokens_after(eight, 2)[0]
    query = own[1 * 7 + 4]
    for found, tokens in ((three.similarity((1, 4), 2), own), (three.similarity((1, 4), 2, eight), others)):
        cosines = tokens @ query / np.linalg.norm(tokens, axis=1) / np.linalg.norm(query)
        np.testing.assert_allclose(found, cosines.reshape(7, 7), atol=1e-3)
    np.testing.assert_array_equal(three.similarity((0, 0)), three.similarity((0, 0), 5))


def test_components_of_two_results_are_fitted_together(three, eight):
    tokens = np.concatenate([tokens_after(three, 5)[0], tokens_after(eight, 5)[0]])
    centred = tokens - tokens.mean(0)
    directions = np.linalg.svd(centred)[2][:3]
    found = np.concatenate([three.pca(other=eight).reshape(49, 3), eight.pca(other=three).reshape(49, 3)])
    expected = centred @ directions.T
    expected *= np.sign(expected[np.abs(expected).argmax(0), [0, 1, 2]])
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert three.pca(components=5).shape == (7, 7, 5)
    assert np.abs(three.pca() - three.pca(other=eight)).max() > 0.1


def test_without_the_background_the_rest_is_fitted_again(three):
    found = three.pca(remove_background=True)
    kept = ~np.isnan(found[..., 0])
    first = three.pca(components=1)[..., 0]
    assert (kept == (first > 0)).all() or (kept == (first <= 0)).all()
    edge = np.ones((7, 7), bool)
    edge[1:-1, 1:-1] = False
    assert edge[kept].mean() < edge[~kept].mean()
    tokens = tokens_after(three, 5)[0].reshape(7, 7, -1)[kept]
    scores = np.linalg.svd(tokens - tokens.mean(0), full_matrices=False)
    np.testing.assert_allclose(np.abs(found[kept]), np.abs(scores[0] * scores[1])[:, :3], atol=1e-3)


def test_segments_lower_the_distance_to_their_means(three):
    tokens = tokens_after(three, 5)[0]

    def spread(labels):
        return sum(((tokens[labels == one] - tokens[labels == one].mean(0)) ** 2).sum() for one in np.unique(labels))

    spreads = [spread(three.kmeans(k).ravel()) for k in (2, 4, 8, 12)]
    assert sorted(spreads, reverse=True) == spreads
    chance = spread(np.random.default_rng(0).permutation(three.kmeans(4).ravel()))
    assert spreads[1] < 0.8 * chance
    assert set(three.kmeans(12).ravel()) == set(range(12))
    np.testing.assert_array_equal(three.kmeans(4, seed=3), three.kmeans(4, seed=3))


def test_norms_are_those_before_the_final_norm(three):
    np.testing.assert_allclose(three.norms(1).ravel(), tokens_after(three, 1)[1], rtol=1e-4)


def test_each_patch_is_classified_by_the_head(three):
    depths = three.logit_lens(patches=True)
    assert len(depths) == 7 and len(depths[0]) == len(depths[0][0]) == 7 and len(depths[0][0][0]) == 5
    head = vit_demo.load("digits-tiny", patch_size=4).head
    with torch.inference_mode():
        probabilities = head(torch.from_numpy(tokens_after(three, 3)[0]).float()).softmax(1).reshape(7, 7, 10)
    for row, line in enumerate(depths[4]):
        for col, pairs in enumerate(line):
            expected = sorted(probabilities[row, col].tolist(), reverse=True)[:5]
            assert [probability for _, probability in pairs] == pytest.approx(expected, abs=1e-4)
            assert pairs[0][0] == str(int(probabilities[row, col].argmax()))


def test_a_dropped_patch_has_no_token(three):
    left = three.drop_patches([(0, 0), (3, 3)])
    for values in (left.similarity((1, 1)), left.norms(), left.pca()[..., 0]):
        assert np.argwhere(np.isnan(values)).tolist() == [[0, 0], [3, 3]]
    assert left.kmeans(3)[0, 0] == -1 and (left.kmeans(3) >= 0).sum() == 47
    assert left.logit_lens(patches=True)[-1][0][0] == []
    assert left.similarity((1, 1)).ravel()[8] == pytest.approx(1)
    with pytest.raises(InputError, match=r"\(0, 0\) was dropped"):
        left.similarity((0, 0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ex: ex.similarity((7, 0)), r"no patch \(7, 0\)"),
        (lambda ex: ex.norms(6), "no block 6"),
        (lambda ex: ex.tokens(6), "no block 6"),
        (lambda ex: ex.kmeans(1), "from 2 to 12"),
        (lambda ex: ex.kmeans(13), "from 2 to 12"),
        (lambda ex: ex.pca(components=0), "from 1 to 64"),
        (lambda ex: ex.pca(components=65), "from 1 to 64"),
        (lambda ex: ex.similarity((0, 0), other=vit_demo.explore(example_picture(1), "digits-small")), "use one model"),
        (lambda ex: vit_demo.explore(example_picture(1), "digits-tiny", patch_size=14).kmeans(5), "from 2 to 4"),
    ],
)
def test_invalid_choices_get_one_sentence(three, call, message):
    with pytest.raises(InputError, match=message) as caught:
        call(three)
    assert str(caught.value).endswith(".")


def test_one_pass_serves_all_blocks_until_its_tokens_are_evicted(three, monkeypatch):
    passes = []
    plain = features.patch_tokens

    def counted(*arguments, **options):
        passes.append(1)
        return plain(*arguments, **options)

    monkeypatch.setattr(features, "patch_tokens", counted)
    monkeypatch.setattr(patch_features, "_cache", ByteCache(1 << 20, lambda tokens: tokens.num_bytes))
    for block in range(6):
        three.norms(block)
        three.kmeans(3, block)
    assert len(passes) == 1
    three.drop_patches([(0, 0)]).norms()
    assert len(passes) == 2
    monkeypatch.setattr(patch_features, "_cache", ByteCache(10, lambda tokens: tokens.num_bytes))
    three.norms()
    three.norms()
    assert len(passes) == 4


def test_tokens_that_are_not_finite_are_refused(three, monkeypatch):
    def broken(*arguments, **options):
        found = features.PatchTokens(*(torch.full((7, 49, 4), float("nan")),) * 4)
        return tuple(found)

    monkeypatch.setattr(features, "patch_tokens", broken)
    monkeypatch.setattr(patch_features, "_cache", ByteCache(1 << 20, lambda tokens: tokens.num_bytes))
    with pytest.raises(vit_demo.CheckpointError, match="not a number"):
        three.norms()


def test_a_model_without_classes_has_no_predictions(three):
    config = replace(three.preset.config, num_classes=0)
    with pytest.raises(LabelError, match="no classes"):
        replace(three, preset=replace(three.preset, config=config)).logit_lens(patches=True)


@pytest.mark.parametrize("place", [{"dtype": torch.bfloat16}, {"device": "meta"}])
def test_tokens_of_another_precision_or_device_are_not_those_of_the_cache(three, place, monkeypatch):
    """Two engines share the cache, and autocast changes a pass; the tokens are those of the result's own pass."""
    monkeypatch.setattr(patch_features, "_cache", ByteCache(1 << 20, lambda tokens: tokens.num_bytes))
    first = three.tokens()
    trace = replace(three.trace, q=[q.to(**place) for q in three.trace.q])
    other = replace(three, trace=trace, run_on_model=lambda *_, **__: [2 * x for x in whole])
    whole = patch_features.patch_tokens(three)
    np.testing.assert_array_equal(other.tokens(), 2 * first)
    np.testing.assert_array_equal(three.tokens(), first)


def test_tokens_without_the_norm_are_those_between_the_blocks():
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    module = timm.models.VisionTransformer(
        32, 8, num_classes=5, embed_dim=24, depth=3, num_heads=3, reg_tokens=2
    ).eval()
    pixels = torch.randn(3, 32, 32)
    ex = vit_demo.explore(pixels, module)
    with torch.no_grad():
        _, found = module.forward_intermediates(pixels[None], norm=False, output_fmt="NLC", return_prefix_tokens=True)
        for block, (patches, prefix) in enumerate(found):
            whole = torch.cat([prefix, patches], 1)
            for norm in (False, True):
                expected = (module.norm(whole) if norm else whole)[0].numpy()
                np.testing.assert_allclose(ex.tokens(block, norm=norm, prefix=True), expected, atol=1e-5)
                np.testing.assert_allclose(ex.tokens(block, norm=norm), expected[3:], atol=1e-5)
    dropped = ex.drop_patches([(0, 0)])
    assert dropped.tokens(norm=False, prefix=True).shape == (3 + 15, 24)


def test_the_gradient_is_that_of_finite_differences():
    module = own().double()
    pixels = torch.randn(3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ex = vit_demo.explore(pixels, module)
    gradient, other = ex.gradient("2"), ex.gradient("2", against="4")
    assert gradient.shape == (3, 32, 32)
    start = ex.pixels.double()
    for place in [(0, 3, 4), (2, 17, 30)]:
        step = torch.zeros_like(start)
        step[(0, *place)] = 1e-4
        with torch.no_grad():
            change = (module(start + step) - module(start - step))[0] / 2e-4
        assert gradient[place] == pytest.approx(float(change[2]), rel=1e-3, abs=1e-7)
        assert other[place] == pytest.approx(float(change[2] - change[4]), rel=1e-3, abs=1e-7)
    with pytest.raises(vit_demo.LabelError):
        ex.gradient("9")


def of_one_network(kind: str):
    """Two results of one network in memory, which a caller gets in four ways."""
    module, x = own(), torch.randn(2, 3, 32, 32)
    if kind == "two calls":
        return module, [vit_demo.explore(one, module) for one in x]
    if kind == "two explainers, other labels":
        return module, [
            vit_demo.Explainer(module, labels=names)(one) for one, names in zip(x, (list("abcde"), None), strict=True)
        ]
    if kind == "one explainer":
        return module, list(map(vit_demo.Explainer(module), x))
    return module, list(vit_demo.explore_batch(x, module))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["two calls", "two explainers, other labels", "one explainer", "a batch"])
def test_two_results_of_one_network_in_memory_are_compared(kind):
    module, (first, second) = of_one_network(kind)
    with torch.no_grad():
        x = module.stem(torch.cat([first.pixels, second.pixels])).flatten(2).mT + module.place
        for layer in module.layers:
            x = layer(x)
    expected = torch.cosine_similarity(x[0, 5], x[1], dim=-1).reshape(4, 4)
    np.testing.assert_allclose(first.similarity((1, 1), other=second), expected, atol=1e-5)
    together = x.flatten(0, 1).double() - x.flatten(0, 1).double().mean(0)
    component = (together @ torch.linalg.svd(together)[2][0])[:16].reshape(4, 4)
    found = first.pca(components=1, other=second)[..., 0]
    np.testing.assert_allclose(np.abs(found), component.abs(), atol=1e-3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "change",
    [
        lambda module: torch.nn.init.normal_(module.head.weight),
        lambda module: [parameter.data.mul_(1.1) for parameter in module.parameters()],
        lambda module: setattr(module.head.weight, "data", torch.randn(5, 24)),
        lambda module: module.load_state_dict(randomize(own()).state_dict()),
        None,
    ],
)
def test_results_of_other_weights_are_of_another_model(change):
    module, x = own(), torch.randn(3, 32, 32)
    first = vit_demo.explore(x, module)
    if change is not None:
        change(module)
    second = vit_demo.explore(x, own() if change is None else module)  # equal weights, and yet another network
    with pytest.raises(InputError, match="use one model"):
        first.similarity((0, 0), other=second)
