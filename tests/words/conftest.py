"""The Hub on this machine of the tests of weights."""

from ..weights.conftest import hub

__all__ = ["hub"]
