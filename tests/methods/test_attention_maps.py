"""Rows, columns and maps of attention against the full matrix, made in other ways."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_demo.methods import attention_from, attention_matrix, attention_to, logsumexp, to_grid
from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.trace import Trace

MakeTrace = Callable[..., Trace]
WriteOut = Callable[[Trace, int], Tensor]


@pytest.mark.parametrize("fields", [{}, {"num_registers": 2}, {"projection": "per_head"}], ids=str)
@pytest.mark.parametrize("block", [0, 2, -1])
def test_rows_columns_and_matrix_equal_the_softmax_written_out(
    trace_of: MakeTrace, written_out: WriteOut, fields: dict[str, object], block: int
) -> None:
    trace = trace_of(**fields)
    full = written_out(trace, block).float()
    assert full.amax() > 2 * full.mean(), "attention must be far from uniform"
    torch.testing.assert_close(attention_matrix(trace, block), full, atol=1e-5, rtol=0)
    for token in range(trace.num_tokens):
        torch.testing.assert_close(attention_from(trace, block, token), full[:, :, token], atol=1e-5, rtol=0)
        torch.testing.assert_close(attention_to(trace, block, token), full[..., token], atol=1e-5, rtol=0)


@pytest.mark.parametrize("chunk_values", [1, 2 * 3 * 17, 4 * 2 * 3 * 17, 1 << 20])
def test_chunks_cover_every_query_once_and_stay_small(
    trace_of: MakeTrace, monkeypatch: pytest.MonkeyPatch, chunk_values: int
) -> None:
    trace = trace_of()
    whole = attention_matrix(trace, 0)
    monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 0)
    monkeypatch.setattr("vit_demo.methods.attention_rows.CHUNK_VALUES", chunk_values)
    parts = [(part, chunk.clone()) for part, chunk in iter_attention_rows(trace.q[0], trace.k[0])]
    assert [query for part, _ in parts for query in range(part.start, part.stop)] == list(range(17))
    assert all(chunk.numel() <= max(chunk_values, 2 * 3 * 17) for _, chunk in parts)
    for part, chunk in parts:
        torch.testing.assert_close(chunk, whole[:, :, part])


def test_logsumexp_and_one_dot_product_give_one_value(trace_of: MakeTrace, written_out: WriteOut) -> None:
    trace = trace_of()
    full, normalisers = written_out(trace, 1).float(), logsumexp(trace.q[1], trace.k[1])
    assert normalisers.shape == (2, 3, 17)
    for i, j in [(0, 0), (0, 16), (7, 3), (16, 1)]:
        dot = (trace.q[1][:, :, i] * trace.k[1][:, :, j]).sum(-1)
        value = torch.exp(dot / 8**0.5 - normalisers[:, :, i])
        torch.testing.assert_close(value, full[:, :, i, j], atol=1e-5, rtol=0)


def test_each_head_shows_the_mean_of_a_pooling_with_another_number_of_heads(trace_of: MakeTrace) -> None:
    trace = trace_of()
    trace.pooling = torch.rand(2, 5, 17)
    expected = (trace.pooling.sum(1) / 5)[:, None].repeat(1, 3, 1)
    torch.testing.assert_close(attention_from(trace, 2, None), expected)


def test_large_scores_do_not_overflow() -> None:
    q = torch.full((1, 1, 3, 4), 100.0)
    trace = Trace(grid=(1, 3), q=[q], k=[q * torch.tensor([1.0, 2.0, 3.0])[:, None]], v=[q])
    expected = torch.tensor([0.0, 0.0, 1.0]).expand(1, 1, 3, 3)
    torch.testing.assert_close(attention_matrix(trace, 0), expected)
    assert logsumexp(trace.q[0], trace.k[0]).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_traces_give_float32_maps(
    trace_of: MakeTrace, written_out: WriteOut, dtype: torch.dtype
) -> None:
    trace = trace_of(dtype=dtype)
    full = written_out(trace, 1).float()
    maps = [attention_matrix(trace, 1), attention_from(trace, 1, 3), attention_to(trace, 1, 3)]
    assert trace.q[1].dtype == dtype
    assert {one.dtype for one in (*maps, logsumexp(trace.q[1], trace.k[1]))} == {torch.float32}
    for ours, expected in zip(maps, (full, full[:, :, 3], full[..., 3]), strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("fields", [{}, {"num_registers": 4}, {"class_token": False, "pool": "mean"}], ids=str)
@pytest.mark.parametrize("size", [(16, 16), (8, 24), (24, 4)])
def test_a_grid_shows_each_patch_at_its_place(
    trace_of: MakeTrace, fields: dict[str, object], size: tuple[int, int]
) -> None:
    trace = trace_of(size=size, **fields)
    rows, columns = size[0] // 4, size[1] // 4
    values = attention_from(trace, 0, 0)
    grid = to_grid(values, trace)
    assert grid.shape == (2, 3, rows, columns)
    first = trace.num_tokens - rows * columns
    for row in range(rows):
        for column in range(columns):
            assert torch.equal(grid[..., row, column], values[..., first + row * columns + column])
    assert to_grid(attention_matrix(trace, 0), trace).shape == (2, 3, trace.num_tokens, rows, columns)
