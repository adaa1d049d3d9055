"""Networks that run, but cannot be explained as they are: the reason is the true one."""

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

import vit_demo
from vit_demo.errors import PresetError

from .networks import own, timm_vit


def test_flex_attention_is_named_with_gradients_too():
    config = transformers.ViTConfig(
        hidden_size=48, num_hidden_layers=1, num_attention_heads=3, intermediate_size=48, image_size=32, patch_size=8
    )
    module = transformers.ViTForImageClassification(config).eval()
    module.set_attn_implementation("flex_attention")
    images = torch.zeros(1, 3, 32, 32)
    with torch.compiler.set_stance("force_eager"):  # compiled or not, torch refuses first of all
        with pytest.raises(NotImplementedError):  # on a CPU
            module(images)
        with pytest.raises(vit_demo.PresetError, match='attn_implementation="sdpa"'), vit_demo.Trace():
            module(images)


@pytest.mark.parametrize("part", ["layers", "head"])
def test_weights_that_are_elsewhere_are_said(part):
    """As accelerate leaves them."""
    module = own()
    getattr(module, part).to("meta")
    with pytest.raises(vit_demo.PresetError, match="without offloading"):
        vit_demo.explore(torch.zeros(3, 32, 32), module)


@pytest.mark.parametrize("error", [vit_demo.InputError("Give me a photo."), vit_demo.PresetError("Not this one.")])
def test_a_sentence_of_the_network_is_passed_on_as_it_is(error):
    module = own()
    module.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(type(error)) as raised:
        vit_demo.explore(torch.zeros(3, 32, 32), module)
    assert str(raised.value) == str(error) and type(raised.value) is type(error)


class WholeClip(nn.Module):
    """As open_clip and OpenAI write theirs."""

    def __init__(self, returns: str) -> None:
        super().__init__()
        self.visual, self.returns = timm_vit(num_classes=0)(), returns
        self.logit_scale = nn.Parameter(torch.ones(()))

    def encode_image(self, images: Tensor) -> Tensor:
        return self.visual(images)

    def encode_text(self, texts: Tensor) -> Tensor:
        return texts

    def forward(self, image: Tensor | None = None, text: Tensor | None = None):
        x = F.normalize(self.encode_image(image), dim=-1)
        found = {"image_features": x, "text_features": text, "logit_scale": self.logit_scale.exp()}
        if self.returns == "logits":
            return x @ x.mT, x @ x.mT
        return found if self.returns == "dict" else tuple(found.values()) if self.returns == "tuple" else x


@pytest.mark.parametrize("returns", ["tuple", "dict", "tensor", "logits"])
def test_a_whole_clip_names_its_part_for_pictures(returns, images):
    module = WholeClip(returns).eval()
    with pytest.raises(PresetError, match=r"\.visual, for an embedding; .* CLIPModel"):
        vit_demo.Explainer(module)(images[0])
    ex = vit_demo.Explainer(module.visual)(images[0])
    assert not ex.labels and ex.rollout().shape == (4, 4)
