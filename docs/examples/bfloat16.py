"""A network in bfloat16; maps are float32."""

import timm
import torch

import vit_demo

model = timm.create_model("vit_tiny_patch16_224", pretrained=True).to(torch.bfloat16)
ex = vit_demo.explore("photos/cat.jpg", model)
print(ex.relevance().dtype, ex.top(1))
