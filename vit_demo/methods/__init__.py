"""Explanation methods: from a trace, or a network and an image, to heatmaps. Imports torch and the network.

Every file of this folder is imported, so that a method in a new file is registered without being named elsewhere. The
package can be called, because its name is also a public function's: ``vit_demo.methods()``.

The methods that run the network share these parameters, and have their options beside them:

- ``model``: In eval mode.
- ``images``: ``[B, C, height, width]``, normalised; a single image for methods of many passes.
- ``target``: The class, or int64 ``[B]``; by default each sample's most probable.
- ``against``: A class that it is compared with: the map explains the difference of both.
- ``patch_size``, ``kept_patches``: As in ``TracedViT.forward``.
- ``progress``: Called after every batch, with the number of passes done and their total.

They return ``[B, rows, cols]`` float32, 0 where a patch is not in the sequence.
"""

import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from vit_demo.methods.attention import attention_from, attention_matrix, attention_to
from vit_demo.methods.attention_rows import logsumexp
from vit_demo.methods.attnlrp import attnlrp
from vit_demo.methods.chunking import memory_budget
from vit_demo.methods.grad_cam import grad_cam
from vit_demo.methods.integrated_gradients import integrated_gradients
from vit_demo.methods.legrad import legrad
from vit_demo.methods.libra_fullgrad import libra_fullgrad
from vit_demo.methods.local_surrogate import local_surrogate
from vit_demo.methods.naclip import naclip
from vit_demo.methods.norm_attention import norm_attention
from vit_demo.methods.occlusion import occlusion
from vit_demo.methods.registry import METHODS, Method, Option, find_method, list_methods, register
from vit_demo.methods.relevance import relevance
from vit_demo.methods.rollout import rollout
from vit_demo.methods.subsets import Progress
from vit_demo.trace.trace import scatter_to_grid, to_grid

__all__ = [
    "METHODS",
    "Method",
    "Option",
    "Progress",
    "attention_from",
    "attention_matrix",
    "attention_to",
    "attnlrp",
    "find_method",
    "grad_cam",
    "integrated_gradients",
    "legrad",
    "libra_fullgrad",
    "list_methods",
    "local_surrogate",
    "logsumexp",
    "memory_budget",
    "naclip",
    "norm_attention",
    "occlusion",
    "register",
    "relevance",
    "rollout",
    "scatter_to_grid",
    "to_grid",
]


def import_all() -> None:
    """Imports every file of this folder, which registers the methods in it."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


class _CallablePackage(ModuleType):
    def __call__(self) -> dict[str, Method]:
        """Every method by name, in the order of ``list_methods``."""
        return {name: METHODS[name] for name in list_methods()}


sys.modules[__name__].__class__ = _CallablePackage
import_all()
