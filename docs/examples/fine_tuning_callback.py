"""Where a network looks, after each epoch of its training."""

import timm
import torch

import vit_demo

model = timm.create_model("vit_tiny_patch16_224", num_classes=2)
optimiser = torch.optim.SGD(model.parameters(), 0.01)
for epoch in range(2):
    loss = model(torch.randn(2, 3, 224, 224)).logsumexp(1).mean()
    loss.backward()
    optimiser.step()
    ex = vit_demo.explore("photos/cat.jpg", model)  # in eval mode; training goes on as before
    ex.overlay(ex.rollout()).save(f"epoch-{epoch}.png")
