"""Rollout, a row vector carried through the blocks, against the product of whole matrices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_demo.methods import attention_matrix, rollout, to_grid
from vit_demo.trace import Recording

MakeTrace = Callable[..., Recording]
WriteOut = Callable[[Recording, int], Tensor]


@pytest.fixture
def naive(written_out: WriteOut) -> Callable[[Recording], Tensor]:
    """The whole product ``[B, N, N]`` in float64, as the paper writes it."""

    def product(trace: Recording) -> Tensor:
        n = trace.num_tokens
        joint = torch.eye(n, dtype=torch.float64)
        for block in range(trace.num_blocks):
            mean = written_out(trace, block).mean(1)  # [B, N, N]
            joint = (mean + torch.eye(n)) / 2 @ joint
        return joint

    return product


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch": 1}, {"num_registers": 4}, {"size": (8, 24)}, {"depth": 1}, {"class_token": False, "pool": "mean"}],
    ids=str,
)
def test_rollout_equals_the_product_of_matrices(
    trace_of: MakeTrace, naive: Callable[[Recording], Tensor], settings: dict[str, object]
) -> None:
    trace = trace_of(**settings)
    product = naive(trace).float()
    torch.testing.assert_close(rollout(trace), product[:, 0], atol=1e-6, rtol=0)
    for query in (3, trace.num_tokens - 1):
        torch.testing.assert_close(rollout(trace, query), product[:, query], atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace, None), product.mean(1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("query", [0, 5, None])
def test_rollout_is_a_share_of_each_token(trace_of: MakeTrace, query: int | None) -> None:
    shares = rollout(trace_of(), query)
    assert shares.shape == (2, 17)
    assert shares.min() > 0
    torch.testing.assert_close(shares.sum(-1), torch.ones(2))


def test_rollout_of_one_block_is_half_attention_and_half_the_token_itself(trace_of: MakeTrace) -> None:
    trace = trace_of(depth=1)
    expected = attention_matrix(trace, 0).mean(1)[:, 5] / 2
    expected[:, 5] += 0.5
    torch.testing.assert_close(rollout(trace, 5), expected)


@pytest.mark.parametrize("query", [0, None])
def test_chunking_does_not_change_rollout(
    trace_of: MakeTrace, monkeypatch: pytest.MonkeyPatch, query: int | None
) -> None:
    trace = trace_of()
    whole = rollout(trace, query)
    monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 0)
    monkeypatch.setattr("vit_demo.methods.attention_rows.CHUNK_VALUES", 500)
    torch.testing.assert_close(rollout(trace, query), whole)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_traces_give_float32_rollout(
    trace_of: MakeTrace, naive: Callable[[Recording], Tensor], dtype: torch.dtype
) -> None:
    trace = trace_of(dtype=dtype)
    shares = rollout(trace)
    assert shares.dtype == torch.float32
    torch.testing.assert_close(shares, naive(trace)[:, 0].float(), atol=1e-6, rtol=0)


def test_samples_of_a_batch_keep_apart(trace_of: MakeTrace) -> None:
    trace = trace_of(batch=3)
    alone = Recording(
        trace.grid, trace.num_prefix_tokens, *([one[1:2] for one in kind] for kind in (trace.q, trace.k, trace.v))
    )
    torch.testing.assert_close(rollout(alone)[0], rollout(trace)[1])


def test_rollout_lies_on_a_rectangular_grid(trace_of: MakeTrace) -> None:
    trace = trace_of(size=(8, 24), num_registers=2)
    shares = rollout(trace)
    grid = to_grid(shares, trace)
    assert grid.shape == (2, 2, 6)
    assert torch.equal(grid[:, 1, 0], shares[:, 3 + 6])
