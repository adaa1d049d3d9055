"""Networks of other libraries in float64, and where they have what the tests of heads change by hand."""

import pytest
import torch

import vit_demo

from ..trace.networks import NETWORKS, timm_network, timm_vit, transformers_network

WIDE = torch.randn(3, 32, 48, generator=torch.Generator().manual_seed(5))
SQUARE = WIDE[:, :, :32]


def wide_timm():
    return timm_network("vision_transformer.VisionTransformer", img_size=(32, 48), init_values=0.5)


class Parts:
    """Where a library has what the tests change: blocks, the input of output projections, what an MLP gives."""

    def __init__(self, make, blocks, projection, mlp, norm, head, pixels=SQUARE):
        self.make, self.pixels, self.names = make, pixels, (blocks, projection, mlp, norm, head)

    def build(self):
        self.module = self.make().double()
        blocks, projection, mlp, norm, head = self.names
        self.blocks = list(self.module.get_submodule(blocks))
        self.projections = [block.get_submodule(projection) for block in self.blocks]
        self.mlps = [block.get_submodule(mlp) for block in self.blocks]
        self.norm, self.head = (self.module.get_submodule(name) for name in (norm, head))
        return vit_demo.explore(self.pixels, self.module)


TIMM = ("blocks", "attn.proj", "mlp", "norm", "head")
CASES = {
    "timm": lambda: Parts(timm_vit(), *TIMM),
    "timm, a rectangle, layer scale": lambda: Parts(wide_timm, *TIMM, WIDE),
    "timm, the mean beside registers": lambda: Parts(
        timm_vit(global_pool="avg", class_token=False, reg_tokens=2), "blocks", "attn.proj", "mlp", "fc_norm", "head"
    ),
    "transformers": lambda: Parts(
        transformers_network("ViTConfig", num_labels=5),
        "vit.layers",
        "attention.o_proj",
        "mlp",
        "vit.layernorm",
        "classifier",
    ),
    "torchvision": lambda: Parts(
        NETWORKS["torchvision"], "encoder.layers", "self_attention.out_proj", "mlp", "encoder.ln", "heads.head"
    ),
}
HEADS, DEPTH, WIDTH = 3, 3, 8


@pytest.fixture(params=CASES, scope="module")
def case(request):
    parts = CASES[request.param]()
    return parts, parts.build()


def skip_torchvision(parts):
    if "torchvision" in type(parts.module).__module__:
        pytest.skip("no module of it gets what the heads give: one function of torch does all")
