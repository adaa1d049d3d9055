"""Any Vision Transformer, unmodified: its attention is recorded and replaced from outside."""

from vit_demo.trace.adapter import adapt, outline
from vit_demo.trace.intervention import Graft, Intervention
from vit_demo.trace.one_pass import AttentionFn
from vit_demo.trace.outputs import Output
from vit_demo.trace.own_vit import OwnViT
from vit_demo.trace.structure import Structure
from vit_demo.trace.trace import Trace
from vit_demo.trace.traced_vit import PassOptions, TracedViT

__all__ = [
    "AttentionFn",
    "Graft",
    "Intervention",
    "Output",
    "OwnViT",
    "PassOptions",
    "Structure",
    "Trace",
    "TracedViT",
    "adapt",
    "outline",
]
