"""A result that requests are about, and what stands for it in them."""

from typing import Any

import pytest

from vit_demo.images import to_mnist
from vit_demo.inference.exploration import Exploration
from vit_demo.service.engine import get_engine
from vit_demo.service.source import Source
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests.parse import ResultRequest
from vit_demo.web.requests.payload import payload
from vit_demo.weights import PRESETS


@pytest.fixture(scope="package")
def request_of() -> ResultRequest:
    digit = to_mnist(example_picture(3))
    return ResultRequest(Source(("digit", "three"), lambda: digit), "digits-tiny", 7, "crop")


@pytest.fixture(scope="package")
def result(request_of: ResultRequest) -> Exploration:
    return get_engine().explore_source(request_of.source, PRESETS["digits-tiny"], 7)


@pytest.fixture(scope="package")
def source(result: Exploration, request_of: ResultRequest) -> dict[str, Any]:
    return payload(result, request_of)["source"]
