"""Ports for servers that tests start."""

import pytest

from .. import servers


@pytest.fixture(scope="module")
def free_port() -> int:
    """Any port that nothing listens on."""
    return servers.free_port()


@pytest.fixture(scope="module")
def space_port() -> int:
    """The port of a Space, or another one where that is taken."""
    return servers.free_port(7860)
