"""Integrated gradients of captum and of this package on one input."""

from captum.attr import IntegratedGradients

import vit_demo
from vit_demo.model import ViT

model = vit_demo.load("photos-tiny")
assert isinstance(model, ViT)
ex = vit_demo.explore("photos/cat.jpg", model, labels=vit_demo.presets()["photos-tiny"].labels)
theirs = IntegratedGradients(model).attribute(ex.pixels, target=ex.target(), n_steps=32)
print(theirs.sum(1).unflatten(1, (5, -1)).unflatten(3, (5, -1)).sum((2, 4)), ex.heatmap("integrated_gradients"))
