"""Why a network that segments sees a class within a mask: the mean logit of the class there is what is explained."""

import timm
import torch
from torch import nn

import vit_demo


class _Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.vit, self.head = timm.create_model("vit_tiny_patch16_224", num_classes=0), nn.LazyConv2d(21, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = self.vit.forward_features(images)[:, 1:]
        return nn.functional.interpolate(self.head(tokens.mT.unflatten(2, (14, 14))), scale_factor=16, mode="bilinear")


(network := _Segmenter().eval())(x := torch.randn(1, 3, 224, 224))
mask = torch.zeros(224, 224).index_fill_(0, torch.arange(50, 100), 1)
explainer = vit_demo.Explainer(network, output=lambda o: (o * mask).sum((2, 3)) / mask.sum())  # [B, 21]
print(explainer.maps(x, "relevance", label=12).shape)
