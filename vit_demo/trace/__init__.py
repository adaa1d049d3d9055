"""Other people's Vision Transformers, unmodified: their attention is watched and replaced from outside."""

from vit_demo.trace.adapter import AdaptedViT, adapt
from vit_demo.trace.trace import Trace

__all__ = ["AdaptedViT", "Trace", "adapt"]
