"""Groups of maps that are known: what was planted is named first, and nothing where nothing was."""

from __future__ import annotations

import numpy as np
import pytest

from vit_demo.auditing.clusters import MOST_POINTS, spectral_clusters
from vit_demo.auditing.groups import groups_of, places_of, split, unusual


def rows(labels, truths=None, **others):
    truths = labels if truths is None else truths
    return [
        {
            "file": str(n),
            "prediction": label,
            "truth": truth,
            "right": label == truth,
            "on_object": None,
            "object_area": None,
        }
        | {name: values[n] for name, values in others.items()}
        for n, (label, truth) in enumerate(zip(labels, truths, strict=True))
    ]


def blobs(count, seed=0):
    """Maps whose evidence lies in a blob somewhere in the middle."""
    numbers, (row, col) = np.random.default_rng(seed), np.indices((10, 10))
    centres = numbers.uniform(3, 6, (count, 2, 1, 1))
    maps = np.exp(-((row - centres[:, 0]) ** 2 + (col - centres[:, 1]) ** 2) / 4) + numbers.uniform(
        0, 0.05, (count, 10, 10)
    )
    return maps.astype(np.float16)


def none(count):
    return [np.zeros(0, np.float16)] * count


def test_clusters_are_the_parts_of_the_points():
    numbers = np.random.default_rng(3)
    truth = numbers.integers(0, 3, 90)
    points = numbers.normal(0, 0.3, (90, 5)) + 4 * np.eye(5)[truth]
    found = spectral_clusters(points, seed=1)
    assert len(set(zip(truth, found, strict=True))) == 3 == len(set(found))
    assert np.array_equal(found, spectral_clusters(points, seed=1))
    assert not spectral_clusters(np.ones((40, 5))).any() and not spectral_clusters(points[:6]).any()


def test_rings_are_parts_that_no_k_means_finds():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 160)
    radius = np.where(np.arange(160) < 80, 1, 5)
    found = spectral_clusters(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1))
    assert not set(found[:80]) & set(found[80:])


def test_of_many_points_some_are_clustered_and_the_others_join_them():
    numbers = np.random.default_rng(3)
    truth = numbers.integers(0, 2, MOST_POINTS + 500)
    found = spectral_clusters(numbers.normal(0, 0.3, (len(truth), 3)) + 9 * truth[:, None])
    assert not set(found[truth == 0]) & set(found[truth == 1])


@pytest.mark.parametrize("place", ["bottom right corner", "left edge", "border"])
def test_a_planted_place_is_named_first(place):
    maps = blobs(120)
    maps[:30][:, places_of((10, 10))[place]] += 30 / places_of((10, 10))[place].sum()
    maps[:30] += np.random.default_rng(1).uniform(0, 0.2, (30, 10, 10)).astype(np.float16)
    labels = ["cow"] * 60 + ["horse"] * 60
    found = groups_of(rows(labels, ["cow"] * 60 + ["horse"] * 60), maps, none(120))
    first = found[0]
    assert first.is_suspicious and sum(group.is_suspicious for group in found) == 1
    assert first.label == "cow" and sorted(first.indices) == list(range(30)) and first.accuracy == 1
    assert f"Reads the {place} in 30 of 60 pictures of cow: " in first.why
    values = maps.astype(float)
    mean, others = (sum(part) / 30 for part in (values[:30], values[30:60]))
    assert np.allclose(first.mean_map, mean, atol=1e-5) and np.allclose(first.difference, mean - others, atol=1e-5)
    far = [np.abs(values[index] - mean).sum() for index in first.indices]
    assert far == sorted(far) and first.files == [f"{index}" for index in first.indices], "the most typical first"
    again = groups_of(rows(labels), maps, none(120))
    assert [group.files for group in again] == [group.files for group in found]


def test_a_mark_whose_absence_speaks_against_the_class_is_named():
    maps, numbers = blobs(60), np.random.default_rng(1)
    maps[:, 0, 0] = numbers.normal(0, 0.5, 60)
    maps[20:, 0, 0] -= 8  # and where it is, the map says nothing of it
    first = groups_of(rows(["cow"] * 60), maps, none(60))[0]
    assert first.is_suspicious and sorted(first.indices) == list(range(20))
    assert "Reads the top left corner in 20 of 60 pictures" in first.why
    assert np.unravel_index(first.difference.argmax(), (10, 10)) == (0, 0) and first.difference[0, 0] > 7


def test_a_corner_is_a_sixth_of_each_side():
    for (rows, cols), size in {(12, 18): (2, 3), (4, 11): (1, 1)}.items():
        for name, corner in ((name, corner) for name, corner in places_of((rows, cols)).items() if "corner" in name):
            expected = np.zeros((rows, cols), bool)
            vertical = slice(0, size[0]) if "top" in name else slice(rows - size[0], rows)
            expected[vertical, slice(0, size[1]) if "left" in name else slice(cols - size[1], cols)] = True
            np.testing.assert_array_equal(corner, expected)
    assert places_of((3, 9)) == {}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_named_where_nothing_was_planted(seed):
    found = groups_of(rows(["cow"] * 80 + ["horse"] * 80), blobs(160, seed), none(160), seed)
    assert not any(group.is_suspicious for group in found)
    flat = np.random.default_rng(seed).exponential(1, (160, 10, 10))
    assert not any(group.is_suspicious for group in groups_of(rows(["cow"] * 160), flat, none(160), seed))


def test_with_masks_the_surroundings_are_a_place():
    on = np.concatenate([np.full(20, 0.1), np.full(40, 0.8)]) + np.random.default_rng(0).uniform(0, 0.05, 60)
    table = rows(["cow"] * 60, on_object=on, object_area=[0.3] * 60)
    first = groups_of(table, blobs(60), none(60))[0]
    assert (
        first.is_suspicious and sorted(first.indices) == list(range(20)) and "surroundings of the object" in first.why
    )
    table = rows(["cow"] * 60, on_object=[0.6] * 50 + [None] * 10, object_area=[0.3] * 50 + [None] * 10)
    assert not any(group.is_suspicious for group in groups_of(table, blobs(60), none(60)))


def test_a_group_by_what_is_seen_and_one_of_another_accuracy():
    tokens = [
        np.eye(8, dtype=np.float16)[n % 2] + np.float16(0.05) * np.random.default_rng(n).normal(size=8)
        for n in range(60)
    ]
    answers = ["cow" if n % 2 else "sheep" for n in range(60)]
    found = groups_of(rows(answers, ["cow"] * 60), blobs(60), tokens)
    shown = [group for group in found if "shows something else" in group.why]
    assert sorted(shown[0].indices % 2) in ([0] * 30, [1] * 30) and {group.accuracy for group in shown} == {0, 1}


@pytest.mark.parametrize("maps", [np.zeros((40, 10, 10)), np.ones((40, 10, 10)), np.full((40, 2, 2), -1.0)])
def test_equal_and_empty_maps_have_no_groups(maps):
    assert groups_of(rows(["cow"] * 40), maps, none(40)) == []
    assert sorted(unusual(rows(["cow"] * 40), maps)) == list(range(1, 41))


def test_numbers_are_split_where_they_are_apart_and_equal_ones_are_not():
    numbers = np.random.default_rng(0)
    values = np.concatenate([numbers.normal(0, 1, 30), numbers.normal(9, 1, 12)]).astype(np.float32)
    assert split(values).tolist() == [False] * 30 + [True] * 12
    for value in numbers.normal(size=200):  # the mean of equal numbers may be below them
        assert not split(np.full(30, value, np.float32)).any()


def test_the_most_unusual_map_is_the_first():
    maps = blobs(30)
    maps[17] = maps[17][::-1, ::-1] * 0
    maps[17][9, 0] = 5
    assert unusual(rows(["cow"] * 30), maps)[17] == 1
    assert unusual(rows(["cow"]), maps[:1]) == [1]


def test_pictures_of_several_grids_are_compared():
    maps = [*blobs(20), *[one.repeat(2, 0).repeat(2, 1) for one in blobs(20)]]
    assert sorted(unusual(rows(["cow"] * 40), maps)) == list(range(1, 41))
    groups_of(rows(["cow"] * 40), maps, none(40))
