"""Where in a picture an image tower of CLIP sees what a text vector stands for."""

import timm
import torch

import vit_demo

tower = timm.create_model("vit_base_patch16_clip_224.laion2b", pretrained=True)
text = torch.nn.functional.normalize(torch.randn(512), dim=0)  # the vector of a text tower
x = torch.randn(1, 3, 224, 224)
explainer = vit_demo.Explainer(tower)
print(explainer.maps(x, "libra_fullgrad", label=lambda image: torch.cosine_similarity(image, text[None])).shape)
