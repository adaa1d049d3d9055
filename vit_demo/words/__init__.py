"""Typed words as classes: what CLIP and SigLIP of transformers say of a picture beside words."""
