"""What can be read from the tokens of a network at each depth. Imports torch and the network."""

from vit_demo.features.logit_lens import logit_lens

__all__ = ["logit_lens"]
