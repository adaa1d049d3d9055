"""The network. Imports torch and nothing else."""

from vit_demo.model.compiling import compile_blocks
from vit_demo.model.config import ViTConfig
from vit_demo.model.trace import Trace
from vit_demo.model.vit import AttentionFn, ViT

__all__ = ["AttentionFn", "Trace", "ViT", "ViTConfig", "compile_blocks"]
