"""The network. Imports torch and nothing else; ``ViTConfig`` is there without torch."""

from typing import TYPE_CHECKING

from vit_demo.lazy import lazy_names
from vit_demo.model.config import ViTConfig

if TYPE_CHECKING:
    from vit_demo.model.vit import ViT

__all__ = ["ViT", "ViTConfig"]

__getattr__ = lazy_names(
    __name__,
    {
        "ViT": "vit_demo.model.vit",
    },
)
