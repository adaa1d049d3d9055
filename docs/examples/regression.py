"""What raises a number that a network estimates, such as an age: its map, in the unit of the number."""

import timm
import torch

import vit_demo

network = timm.create_model("vit_tiny_patch16_224", num_classes=1).eval()  # trained by yourself
explainer = vit_demo.Explainer(network, scores="none", labels=["years"])
ex = explainer("photos/cat.jpg")
print(ex.top(1), ex.heatmap("libra_fullgrad").shape)
print(ex.faithfulness("libra_fullgrad", steps=4, seeds=1).measured)  # the number itself
print(explainer.maps(torch.randn(2, 3, 224, 224), "relevance").shape)
