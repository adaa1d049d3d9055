"""The film's numbers: against the package's own, for networks of every shape, and what is refused."""

import base64
from typing import Any

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo.inference.film import film, strongest_pairs
from vit_demo.methods import attention_rows
from vit_demo.model import ViT, ViTConfig
from vit_demo.web.catalog.example_digits import example_picture

from ...replies import complete

SMALL: dict[str, Any] = {
    "image_size": 28, "patch_size": 7, "in_channels": 1, "num_classes": 10, "embed_dim": 24, "depth": 3, "num_heads": 2,
    "mlp_ratio": 2.0,
}  # fmt: skip
NETWORKS: dict[str, dict[str, Any]] = {
    "class token": {},
    "registers": {"num_registers": 4},
    "no class token": {"class_token": False, "pool": "mean"},
    "no classes": {"num_classes": 0},
    "twelve blocks": {"depth": 12},
    "196 squares": {"patch_size": 2},
    "more classes than are sent": {"num_classes": 40},
}


def exploration(name: str) -> vit_demo.Exploration:
    torch.manual_seed(0)
    return vit_demo.explore(example_picture(3), ViT(ViTConfig(**SMALL | NETWORKS[name])).eval())


@pytest.mark.parametrize("dropped", [[], [(1, 1), (0, 3)]], ids=["whole", "without two squares"])
@pytest.mark.parametrize("query", [None, (2, 1)], ids=["class token", "square"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_numbers_are_those_of_the_package(name: str, query: tuple[int, int] | None, dropped: list) -> None:
    ex = exploration(name)
    ex = ex.drop_patches(dropped) if dropped else ex
    found, blocks, prefix = film(ex, query), ex.trace.num_blocks, ex.trace.num_prefix_tokens
    kept = [divmod(i, ex.grid[1]) for i in range(np.prod(ex.grid)) if divmod(i, ex.grid[1]) not in ex.dropped]
    for block in range(blocks):
        map = ex.attention(block, query=query)
        np.testing.assert_allclose(found.attention[block, prefix:], [map[place] for place in kept], atol=1e-6)
        tokens = ex.tokens(block, norm=False, prefix=True)[:, found.components]
        np.testing.assert_allclose(found.tokens[block + 1], tokens, atol=1e-4)
        between = np.stack([ex.attention(block, query=place) for place in kept])  # [N, rows, cols]
        rows, columns = np.array(kept).T
        np.fill_diagonal(flat := between[:, rows, columns], -1)
        strongest = np.sort(flat.ravel())[::-1][: len(found.shares[block])]
        np.testing.assert_allclose(found.shares[block], strongest, atol=1e-6)
        np.testing.assert_allclose([flat[a - prefix, b - prefix] for a, b in found.pairs[block]], strongest, atol=1e-6)
    np.testing.assert_allclose(found.attention.sum(1), 1, atol=1e-5)
    if not ex.labels:
        assert found.answers.shape == (blocks + 1, 0)
        return
    assert set(found.classes) >= {int(i) for i in np.argsort(-ex.logits)[:5]}
    for said, ranking in zip(found.answers, ex.logit_lens(), strict=True):
        probability = dict(ranking)
        np.testing.assert_allclose(said, [probability[ex.labels[i]] for i in found.classes], atol=1e-5)
        assert ex.labels[found.classes[said.argmax()]] == ranking[0][0], "whoever leads is among them"


def test_the_components_are_those_that_vary_most() -> None:
    ex = exploration("class token")
    depths = np.stack([ex.tokens(block, norm=False, prefix=True) for block in range(3)])
    found = film(ex)
    assert found.width == 24 and len(found.components) == 8 and found.tokens.shape == (4, 17, 8)
    spread = np.concatenate([found.tokens[:1].reshape(-1, 8), depths[..., found.components].reshape(-1, 8)]).std(0)
    others = [i for i in range(24) if i not in found.components]
    assert depths[..., others].reshape(-1, 16).std(0).max() < 1.2 * spread.min()


def test_a_long_sequence_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = exploration("196 squares")
    places, shares = strongest_pairs(ex.trace, 1)
    monkeypatch.setattr(attention_rows, "WHOLE_VALUES", 1)
    monkeypatch.setattr(attention_rows, "CHUNK_VALUES", 2 * 197 * 40)
    again, chunked = strongest_pairs(ex.trace, 1)
    assert places.tolist() == again.tolist()
    np.testing.assert_allclose(shares, chunked, atol=1e-6)


def test_the_page_gets_them_in_one_reply(source: dict[str, Any]) -> None:
    reply = complete({"kind": "film", "source": source, "query": 5})["result"]
    size = source["patch_size"]
    found = film(vit_demo.explore(example_picture(3), "digits-tiny", patch_size=size), divmod(5, 28 // size))
    for name in ("attention", "shares", "tokens", "answers"):
        sent = np.frombuffer(base64.b64decode(reply[name]), "<f4")
        np.testing.assert_allclose(sent, getattr(found, name).ravel(), atol=1e-5)
    assert reply["components"] == found.components.tolist() and reply["labels"] == list("0123456789")


def test_a_square_that_is_not_there_is_refused(source: dict[str, Any]) -> None:
    assert "There is no patch" in complete({"kind": "film", "source": source, "query": 10**6})["error"]
    assert "was dropped" in complete({"kind": "film", "source": {**source, "dropped": [3]}, "query": 3})["error"]
