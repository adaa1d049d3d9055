"""Rollout, a row vector carried through the blocks, against the product of whole matrices."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_demo.methods import memory_budget, rollout
from vit_demo.trace import Trace

MakeTrace = Callable[..., Trace]
WriteOut = Callable[[Trace, int], Tensor]


@pytest.fixture
def naive(written_out: WriteOut) -> Callable[[Trace], Tensor]:
    """The whole product ``[B, N, N]`` in float64, as the paper writes it."""

    def product(trace: Trace) -> Tensor:
        n = trace.num_tokens
        joint = torch.eye(n, dtype=torch.float64)
        for block in range(trace.num_blocks):
            mean = written_out(trace, block).mean(1)  # [B, N, N]
            joint = (mean + torch.eye(n)) / 2 @ joint
        return joint

    return product


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch": 1}, {"num_registers": 4}, {"size": (8, 24)}, {"depth": 1}, {"class_token": False, "pool": "mean"},
     {"dtype": torch.bfloat16}, {"dtype": torch.float16}],
    ids=str,
)  # fmt: skip
def test_rollout_equals_the_product_of_matrices(
    trace_of: MakeTrace, naive: Callable[[Trace], Tensor], settings: dict[str, object]
) -> None:
    trace = trace_of(**settings)
    product = naive(trace).float()
    torch.testing.assert_close(rollout(trace), product[:, 0], atol=1e-6, rtol=0)  # float32 in any case
    for query in (3, trace.num_tokens - 1):
        torch.testing.assert_close(rollout(trace, query), product[:, query], atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace, None), product.mean(1), atol=1e-6, rtol=0)
    with memory_budget(1e-9), torch.autocast("cpu"):  # block by block, a query at a time
        torch.testing.assert_close(rollout(trace, 3), product[:, 3], atol=1e-6, rtol=0)
    with torch.autocast("cpu"):
        torch.testing.assert_close(rollout(trace, 3), product[:, 3], atol=1e-6, rtol=0)
