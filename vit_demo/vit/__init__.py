"""The network. Imports torch and nothing else."""

from vit_demo.vit.compiling import compile_blocks
from vit_demo.vit.config import ViTConfig
from vit_demo.vit.model import ViT
from vit_demo.vit.trace import Trace

__all__ = ["Trace", "ViT", "ViTConfig", "compile_blocks"]
