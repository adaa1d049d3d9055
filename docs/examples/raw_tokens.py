"""Tokens between the blocks, before the final norm, the class token first."""

import timm

import vit_demo

model = timm.create_model("vit_tiny_patch16_224", pretrained=True)
ex = vit_demo.explore("photos/cat.jpg", model)
tokens = ex.tokens(block=5, norm=False, prefix=True)
print(tokens.shape, ex.pca(block=5).shape, ex.similarity((3, 4), block=5).shape)
