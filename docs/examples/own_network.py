"""A network of timm as it is: the attention of every head, and whether a heatmap is faithful."""

import timm

import vit_demo

model = timm.create_model("vit_tiny_patch16_224", pretrained=True)
ex = vit_demo.explore("photos/cat.jpg", model)
print(ex.top(3), ex.attention_maps().shape)
test = ex.faithfulness("relevance", steps=7, seeds=3)
print(test.deletion_area, test.random_deletion_area)
