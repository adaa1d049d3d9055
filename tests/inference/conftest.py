"""The tiny network of the engine's tests."""

from ..service.conftest import photo, tiny

__all__ = ["photo", "tiny"]
