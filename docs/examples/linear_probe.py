"""A linear probe on a frozen backbone, which runs under no_grad, is explained as it is."""

import timm
import torch
from torch import nn

import vit_demo


class _Probe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = timm.create_model("vit_tiny_patch16_224", num_classes=0).eval(), nn.LazyLinear(3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = self.backbone(images)
        logits: torch.Tensor = self.head(features)
        return logits


(network := _Probe().eval())(x := torch.randn(1, 3, 224, 224))
print(vit_demo.Explainer(network, labels=["a", "b", "c"]).maps(x, "libra_fullgrad", label="b").shape)
