"""What was taught to a network in memory is a torch module with that head: for export, or any other program."""

import timm
import torch

import vit_demo

network = timm.create_model("vit_tiny_patch16_224").eval()
x = torch.randn(6, 3, 224, 224)
taught = vit_demo.teach({"one": list(x[:3]), "other": list(x[3:])}, network)
assert taught.module is not None  # as it is for a named network
with torch.no_grad():
    exported = torch.export.export(taught.module, (x[:1],))  # torch.onnx.export takes it as well
    print((exported.module()(x[:1]) - taught.module(x[:1])).abs().max() < 1e-4, taught.labels, taught.accuracy)
