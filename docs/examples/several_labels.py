"""A network whose classes do not exclude each other: a probability for each."""

import timm

import vit_demo

model = timm.create_model("vit_tiny_patch16_224", num_classes=3)
ex = vit_demo.explore("photos/cat.jpg", model, labels=["person", "dog", "grass"], scores="sigmoid")
for label, probability in ex.top(3):
    print(label, probability, ex.relevance(label).max())
