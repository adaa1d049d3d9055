"""A network with seven classes of one's own, named as in transformers."""

import timm

import vit_demo

id2label = dict(enumerate(["scratch", "dent", "rust", "crack", "stain", "chip", "none"]))
model = timm.create_model("vit_tiny_patch16_224", num_classes=7)
ex = vit_demo.explore("photos/cat.jpg", model, labels=id2label)
print(ex.top(2), ex.relevance("rust").shape)
