"""A photo whose grid has more columns than rows: rows and columns are never taken for each other; dropping patches."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo import features
from vit_demo.errors import InputError
from vit_demo.inference.patch_features import edge_patches


@pytest.fixture
def wide(tiny, photo):
    """3 x 5 patches, and the network that saw them."""
    engine, model, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8, fit="keep")
    assert ex.grid == (3, 5)
    return ex, model


def test_a_place_is_row_and_column(wide):
    ex, model = wide
    assert ex.to_dict()["grid"] == [3, 5]
    row = vit_demo.table([ex])[0]
    assert (row["rows"], row["cols"]) == (3, 5)
    prefix = model.config.num_prefix_tokens
    whole = ex.trace.attention(1)[0]  # [H, N, N]
    for place in ((0, 4), (2, 0), (1, 3)):
        token = prefix + place[0] * 5 + place[1]
        expected = whole[1, token, prefix:].unflatten(0, (3, 5))
        np.testing.assert_allclose(ex.attention(1, 1, place), expected, atol=1e-6)
        np.testing.assert_allclose(ex.attention(1, 1, place, "to"), whole[1, prefix:, token].view(3, 5), atol=1e-6)
        np.testing.assert_allclose(ex.attention_maps(place)[1, 1], expected, atol=1e-6)
        assert ex.similarity(place)[place] == pytest.approx(1, abs=1e-5)
        assert np.unravel_index(ex.similarity(place).argmax(), (3, 5)) == place
    for place in ((3, 0), (0, 5), (4, 2), (-1, 0)):
        with pytest.raises(InputError, match="the grid has 3 rows and 5 columns"):
            ex.attention(query=place)
        with pytest.raises(InputError, match="the grid has 3 rows and 5 columns"):
            vit_demo.Explainer(model.module).maps(ex.pixels, "attention", query=place)


def test_maps_of_patch_tokens_are_where_their_patches_are(wide):
    ex, model = wide
    read = features.patch_tokens(model, ex.pixels, patch_size=8)
    tokens = read.tokens[-1].view(3, 5, -1)
    np.testing.assert_allclose(ex.norms(), read.norms[-1].view(3, 5), rtol=1e-5)
    cosines = torch.cosine_similarity(tokens, tokens[2, 1], dim=-1)
    np.testing.assert_allclose(ex.similarity((2, 1)), cosines, atol=1e-3)
    assert ex.kmeans(2).shape == (3, 5) and ex.pca().shape == (3, 5, 3)
    centred = tokens.flatten(0, 1) - tokens.flatten(0, 1).mean(0)
    first = (centred @ torch.linalg.svd(centred)[2][0]).view(3, 5)
    np.testing.assert_allclose(np.abs(ex.pca(components=1)[..., 0]), first.abs(), atol=1e-4)
    lens = ex.logit_lens(patches=True)[-1]
    assert [len(row) for row in lens] == [5, 5, 5]
    for (row, col), probability in np.ndenumerate(read.probabilities[-1, :, 0].view(3, 5)):
        assert lens[row][col][0][1] == pytest.approx(float(probability), abs=1e-6)
    edges = [row in (0, 2) or col in (0, 4) for row in range(3) for col in range(5)]
    assert edge_patches(ex).tolist() == edges


def test_after_dropping_patches_everything_is_of_the_new_result(wide, tmp_path):
    ex, model = wide
    gone = [(0, 4), (2, 0), (1, 3)]
    left = ex.drop_patches(gone)
    kept = torch.tensor([[i for i in range(15) if divmod(i, 5) not in gone]])
    with torch.no_grad():
        logits = model(ex.pixels, patch_size=8, kept_patches=kept)[0]
    np.testing.assert_allclose(left.logits, logits, atol=1e-5)
    np.testing.assert_allclose(left.probabilities, logits.softmax(0), atol=1e-6)
    assert not left.logits.flags.writeable and left.seconds != ex.seconds > 0
    assert left.trace.num_tokens == ex.trace.num_tokens - 3 and torch.equal(left.trace.kept_patches, kept)
    assert left.trace.grid == left.grid == (3, 5) and left.num_bytes < ex.num_bytes
    assert left.dropped == tuple(sorted(gone)) and left.to_dict()["dropped"] == [[0, 4], [1, 3], [2, 0]]
    for values in (left.rollout(), left.relevance(), left.heatmap("occlusion"), left.attention(0, 0, (0, 3))):
        assert all(values[place] == 0 for place in gone)
    assert np.isnan(left.norms()[tuple(zip(*gone, strict=True))]).all() and np.isnan(left.norms()).sum() == 3
    left.save(tmp_path / "result")
    again = vit_demo.load_result(tmp_path / "result", model)
    assert again.dropped == left.dropped and again.seconds == left.seconds
    np.testing.assert_array_equal(again.rollout(), left.rollout())
    alone = ex.drop_patches(patch for patch in np.ndindex(3, 5) if patch != (2, 4))
    assert alone.dropped[-1] == (2, 3) and np.count_nonzero(alone.rollout()) == 1
    with pytest.raises(InputError, match="must stay"):
        alone.drop_patches([(2, 4)])


def test_a_plain_colour_is_never_sure(tiny, photo):
    engine, _, _ = tiny
    ex = engine.explore(photo, "photos-tiny", patch_size=8)
    sure = replace(ex, logits=np.float32([20, 0, 0]))
    assert sure.is_confident and not replace(sure, pixels=torch.full_like(ex.pixels, 0.3)).is_confident
