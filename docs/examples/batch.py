"""Maps of a batch of tensors, each for a class of its own, on the device of the batch."""

import timm
import torch

import vit_demo

model = timm.create_model("vit_tiny_patch16_224", pretrained=True)
explainer = vit_demo.Explainer(model)
x = torch.randn(4, 3, 224, 224)
print(explainer.maps(x, "relevance", label=[281, 282, 285, 291]).shape)
