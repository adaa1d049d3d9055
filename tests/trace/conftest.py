"""Each of the networks in turn, and two pictures."""

import pytest
import torch
from torch import Tensor

from vit_demo.trace import TracedViT, adapt

from .networks import NETWORKS


@pytest.fixture(params=NETWORKS, scope="module")
def network(request) -> TracedViT:
    return adapt(NETWORKS[request.param](), 32)


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(3))
