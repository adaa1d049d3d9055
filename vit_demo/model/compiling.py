"""``torch.compile`` for the blocks of a network, which makes training on CUDA faster."""

from __future__ import annotations

from typing import Any

from torch import nn

from vit_demo.model.vit import Block


def compile_blocks(model: nn.Module, **options: Any) -> None:
    """Compiles every block of a model in place, for training on CUDA; weights and their names stay as they are.

    Only the blocks: resampling of kernel and positions is little work, and the compiler cannot differentiate it.

    Args:
        model: Any module; blocks inside it are compiled.
        **options: Of ``torch.compile``.
    """
    for module in model.modules():
        if isinstance(module, Block):
            module.compile(**options)
