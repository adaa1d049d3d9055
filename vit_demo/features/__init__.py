"""What the tokens of a network know at each depth. Imports torch and the network."""

from vit_demo.features.logit_lens import lens

__all__ = ["lens"]
