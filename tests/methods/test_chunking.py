"""Smaller chunks change what is held at once, in one block of one thread, and never a map."""

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from vit_demo import methods, metrics
from vit_demo.methods import METHODS, memory_budget
from vit_demo.methods.attention_rows import attention_rows_into, iter_attention_rows, queries_per_chunk
from vit_demo.methods.chunking import chunk_size, current_budget
from vit_demo.methods.relevance import RelevanceRow
from vit_demo.methods.subsets import sequences_per_batch
from vit_demo.model import ViT
from vit_demo.trace import Trace, TracedViT

Network = Callable[..., TracedViT]
LEAST = 1 / 64


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[int]]]:
    """How many rows of attention and how many pictures were computed at once; at a budget of 1 all fit."""
    seen: dict[str, list[int]] = {"rows": [], "pictures": []}
    forward_features = ViT.forward_features

    def watch_rows(queries: Tensor, *rest: object) -> None:
        seen["rows"].append(queries.shape[1])
        attention_rows_into(queries, *rest)

    def watch_pictures(self: ViT, images: Tensor, *rest: object, **options: object) -> Tensor:
        seen["pictures"].append(len(images))
        return forward_features(self, images, *rest, **options)

    for module in ("attention_rows", "relevance"):
        monkeypatch.setattr(sys.modules[f"vit_demo.methods.{module}"], "attention_rows_into", watch_rows)
    for module in ("attention_rows", "norm_attention"):
        monkeypatch.setattr(sys.modules[f"vit_demo.methods.{module}"], "CHUNK_VALUES", 64 * 4 * 3 * 17)
    monkeypatch.setattr(sys.modules["vit_demo.methods.attention_rows"], "WHOLE_VALUES", 0)
    monkeypatch.setattr(sys.modules["vit_demo.methods.subsets"], "BATCH_TOKENS", 64 * 2 * 17)
    monkeypatch.setattr(ViT, "forward_features", watch_pictures)
    yield seen


@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.parametrize("name", METHODS)
def test_every_map_is_the_same_in_small_chunks(network: Network, held: dict, name: str, pool: str) -> None:
    model, images = network(pool=pool, class_token=pool == "cls"), torch.randn(1, 3, 16, 16)
    expected = METHODS[name].compute(model, images, 2)
    whole = {kind: max(counts, default=0) for kind, counts in held.items()}
    for counts in held.values():
        counts.clear()
    with memory_budget(LEAST):
        found = METHODS[name].compute(model, images, 2)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    # Without a class token a row has 16 values, and five rows fit.
    assert max(held["rows"], default=0) in ((0,) if not whole["rows"] else (1, 4, 5))
    many = METHODS[name].is_slow
    assert whole["pictures"] > 10 if many else whole["pictures"] == 1
    assert max(held["pictures"]) <= (8 if many else 1)


@pytest.mark.parametrize("query", [2, None])
def test_what_follows_from_a_trace_is_the_same_in_small_chunks(trace_of, held: dict, query: int | None) -> None:
    trace = trace_of()
    makers = (
        lambda: methods.attention_from(trace, -1, query),
        lambda: methods.attention_to(trace, 0, query),
        lambda: methods.rollout(trace, query),
        lambda: methods.logsumexp(trace.q[0], trace.k[0]),
    )
    for make in makers:
        expected = make()
        with memory_budget(LEAST):
            torch.testing.assert_close(make(), expected, atol=1e-5, rtol=1e-4)
    assert set(held["rows"]) >= {17, 2, 1}, "two samples share the room for four rows, and one of 17 is left over"


def test_what_is_measured_is_the_same_in_small_chunks(network: Network, held: dict) -> None:
    model, images, values, grey = network(), torch.randn(1, 3, 16, 16), torch.randn(4, 4), torch.zeros(1)
    found = []
    for factor in (1, LEAST):
        held["pictures"].clear()
        with memory_budget(factor):
            curves = metrics.faithfulness(model, images, 1, values, grey, seeds=2)
            found.append((curves, metrics.randomization(model, images, 1, "relevance"), max(held["pictures"])))
    np.testing.assert_allclose(found[1][0].deletion, found[0][0].deletion, atol=1e-6)
    np.testing.assert_allclose(found[1][0].random_insertion, found[0][0].random_insertion, atol=1e-6)
    assert found[1][1] == pytest.approx(found[0][1], abs=1e-3)
    assert found[0][2] == 2 * 3 * 15 and found[1][2] == 2


def test_a_budget_ends_with_its_block_and_holds_in_its_thread_alone() -> None:
    q = torch.empty(1, 12, 1 << 12, 64)
    rows, batch = queries_per_chunk(q), sequences_per_batch(16)
    with ThreadPoolExecutor(1) as other, pytest.raises(KeyError), memory_budget(1 / 8):
        assert (queries_per_chunk(q), sequences_per_batch(16)) == (rows // 8, batch // 8)
        assert other.submit(queries_per_chunk, q).result() == rows
        with memory_budget(1 / 2):
            assert sequences_per_batch(16) == batch // 2
        assert sequences_per_batch(16) == batch // 8
        raise KeyError
    assert (queries_per_chunk(q), sequences_per_batch(16), current_budget()) == (rows, batch, 1)
    with memory_budget(1e-12):
        assert chunk_size(1 << 20, 10) == queries_per_chunk(q) == sequences_per_batch(16) == 1


def test_a_started_iteration_and_a_backward_in_another_thread_keep_their_budget(trace_of, held: dict) -> None:
    trace: Trace = trace_of(batch=1)
    q, k, v = trace.q[0].clone(), trace.k[0].clone(), trace.v[0].clone()
    with memory_budget(LEAST):
        chunks, row = iter_attention_rows(q, k), RelevanceRow(average_heads_first=False, together=1)
        next(chunks)
    assert {len(range(*part.indices(17))) for part, _ in chunks} == {4, 1}
    held["rows"].clear()
    row.start(torch.ones(1, 17), trace, torch.zeros(()))
    with ThreadPoolExecutor(1) as other:  # as autograd does for a GPU
        other.submit(row.propagate, q, k, v, torch.ones_like(v), with_gradients=True).result()
    assert held["rows"] == [4, 4, 4, 4, 1]


@pytest.mark.parametrize("factor", [0, -1, math.nan, math.inf])
def test_an_invalid_budget_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="finite number above 0"), memory_budget(factor):
        pass
