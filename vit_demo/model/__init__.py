"""The network. Imports torch and nothing else; ``ViTConfig`` is there without torch."""

from typing import TYPE_CHECKING, Any

from vit_demo.model.config import ViTConfig

if TYPE_CHECKING:
    from vit_demo.model.vit import ViT

__all__ = ["ViT", "ViTConfig"]


def __getattr__(name: str) -> Any:
    if name != "ViT":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vit_demo.model.vit import ViT

    globals()[name] = ViT
    return ViT
