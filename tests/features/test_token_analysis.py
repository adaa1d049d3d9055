"""Similarity, principal components, segments, outliers and reduction against numpy, scipy and plain loops."""

import math

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2

from vit_demo.features import choose_seeds, foreground, kmeans, norm_outliers, pca, reduce_tokens, similarity

RNG = np.random.default_rng(0)


def tokens_like_a_network(count: int, width: int) -> np.ndarray:
    """Tokens that share a large mean and vary less and less along other directions."""
    spread = RNG.normal(size=(count, width)) * np.exp(-np.arange(width) / (width / 6))
    return (5 * RNG.normal(size=width) + 4 * spread @ RNG.normal(size=(width, width)) / 3).astype(np.float32)


def test_similarity_is_the_cosine_of_each_pair() -> None:
    tokens = tokens_like_a_network(20, 16)
    tokens[3] = 0
    found = similarity(tokens[7], tokens)
    for one, value in zip(tokens.tolist(), found, strict=True):
        query = tokens[7].tolist()
        dot = sum(a * b for a, b in zip(query, one, strict=True))
        lengths = math.hypot(*query) * math.hypot(*one)
        assert value == pytest.approx(dot / lengths if lengths else 0, abs=1e-6)
    assert found[7] == pytest.approx(1) and found.dtype == np.float32


def test_components_are_projections_on_the_eigenvectors_of_the_covariance() -> None:
    tokens = tokens_like_a_network(50, 12)
    scores = pca(tokens, 4)
    centred = tokens.astype(np.float64) - tokens.mean(0)
    values, vectors = np.linalg.eigh(np.cov(centred.T, bias=True))
    for component in range(4):
        expected = centred @ vectors[:, -1 - component]
        expected *= np.sign(expected[np.abs(expected).argmax()])
        np.testing.assert_allclose(scores[:, component], expected, atol=1e-3)
        assert scores[:, component].var() == pytest.approx(values[-1 - component], rel=1e-4)


def test_tokens_left_out_are_neither_fitted_nor_shown() -> None:
    tokens, kept = tokens_like_a_network(30, 8), RNG.random(30) < 0.5
    scores = pca(tokens, 2, kept)
    np.testing.assert_allclose(scores[kept], pca(tokens[kept], 2), atol=1e-6)
    assert np.isnan(scores[~kept]).all()
    assert (pca(tokens, 3, np.arange(30) == 4)[4] == 0).all()


def test_what_exceeds_the_rank_is_zero() -> None:
    scores = pca(np.eye(2, 8, dtype=np.float32), 5)
    assert np.abs(scores[:, 0]).min() > 0.5 and np.abs(scores[:, 1:]).max() < 1e-6


def test_the_foreground_is_the_side_that_touches_the_edge_less() -> None:
    row, col = np.divmod(np.arange(49), 7)
    edges = (row == 0) | (row == 6) | (col == 0) | (col == 6)
    middle = (abs(row - 3) < 2) & (abs(col - 3) < 2)
    for sign in (1, -1):
        assert (foreground(np.where(middle, sign, -sign), edges) == middle).all()
    assert foreground(np.ones(49), edges).all()


@pytest.mark.parametrize("k", [2, 5, 12])
def test_segments_are_those_of_scipy_from_the_same_points(k: int) -> None:
    points = np.concatenate([RNG.normal(centre, 1, (40, 6)) for centre in RNG.normal(0, 4, (6, 6))])
    seeds = choose_seeds(points)
    assert len(set(seeds.tolist())) == 12
    expected = kmeans2(points, points[seeds[:k]], iter=200, minit="matrix")[1]
    np.testing.assert_array_equal(kmeans(points, seeds[:k]), expected)


def test_seeds_lie_far_apart_and_depend_on_the_seed_alone() -> None:
    groups = np.repeat(np.eye(12) * 100, 9, axis=0)
    points = groups + RNG.normal(0, 0.1, groups.shape)
    assert sorted(choose_seeds(points, seed=3) // 9) == list(range(12))
    np.testing.assert_array_equal(choose_seeds(points, seed=3), choose_seeds(points, seed=3))
    np.testing.assert_array_equal(choose_seeds(points, 4, seed=3), choose_seeds(points, 12, seed=3)[:4])
    assert (choose_seeds(points, seed=3) != choose_seeds(points, seed=4)).any()


def test_equal_points_still_give_as_many_seeds() -> None:
    assert len(set(choose_seeds(np.ones((15, 3))))) == 12
    assert len(choose_seeds(np.ones((4, 3)), 12)) == 4
    assert set(kmeans(np.ones((5, 3)), np.array([2, 4]))) == {0}


def test_outliers_are_far_above_the_rest() -> None:
    norms = RNG.normal(40, 5, 200).astype(np.float32)
    norms[[3, 77]] = 200
    norms[9] = np.nan
    assert np.flatnonzero(norm_outliers(norms)).tolist() == [3, 77]
    assert not norm_outliers(np.array([1, 1, 1, 1.9])).any()  # beyond the fence, but not twice the median
    assert not norm_outliers(np.full((2, 2), np.nan)).any()
    assert norm_outliers(norms.reshape(10, 20)).shape == (10, 20)


@pytest.mark.parametrize(("count", "width"), [(49, 128), (100, 192), (196, 128), (4, 64), (300, 384), (1, 8)])
def test_half_precision_of_the_reduced_tokens_keeps_every_cosine_within_a_thousandth(count: int, width: int) -> None:
    tokens = tokens_like_a_network(count, width)
    reduced = reduce_tokens(tokens)
    assert reduced.components.shape[1] <= min(count, width)
    sent = reduced.components.astype(np.float16).astype(np.float64)
    whole = np.concatenate([sent + reduced.mean, reduced.offsets[:, None]], 1) / reduced.lengths[:, None]
    unit = tokens / np.linalg.norm(tokens.astype(np.float64), axis=1, keepdims=True)
    np.testing.assert_allclose(whole @ whole.T, unit @ unit.T, atol=1e-3)
    np.testing.assert_allclose(reduced.unit_vectors(), whole, atol=1e-3)


def test_reduced_components_are_the_principal_components() -> None:
    tokens = tokens_like_a_network(90, 80)
    reduced = reduce_tokens(tokens)
    scale = np.linalg.norm(tokens, axis=1).max()
    np.testing.assert_allclose(scale * reduced.main, pca(tokens, 64), atol=1e-3)
    shares = pca(tokens, 64).var(0) / tokens.astype(np.float64).var(0).sum()
    np.testing.assert_allclose(reduced.shares[:64], shares, atol=1e-5)


def test_few_components_are_kept_where_they_are_enough() -> None:
    wide = RNG.normal(size=(200, 3)) @ RNG.normal(size=(3, 150)) + 1e-4 * RNG.normal(size=(200, 150))
    assert reduce_tokens(wide).components.shape == (200, 64)
    assert np.isfinite(reduce_tokens(np.ones((9, 5), np.float32)).unit_vectors()).all()


def test_one_component_fewer_would_not_be_enough() -> None:
    tokens = tokens_like_a_network(100, 192).astype(np.float64)
    unit, mean = tokens / np.linalg.norm(tokens, axis=1, keepdims=True), tokens.mean(0)
    directions = np.linalg.svd(tokens - mean, full_matrices=False)[2]
    kept = reduce_tokens(tokens).components.shape[1]
    bases = (np.linalg.qr(np.vstack([directions[:count], mean]).T)[0] for count in (kept - 1, kept))
    left, still_left = ((1 - ((unit @ basis) ** 2).sum(1)).max() for basis in bases)
    assert 64 < kept < 100 and still_left <= 5e-4 < left
