"""What a block adds to its tokens must be what one linear map gives, or norm-based attention is refused."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.methods import norm_attention
from vit_demo.trace import adapt

from .networks import NETWORKS, Own, timm_network, timm_vit


class Adapted(nn.Module):
    """A linear map with an adapter of low rank beside it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.down, self.up = base, nn.Linear(24, 2, bias=False), nn.Linear(2, 24, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


class Layer(Own.Layer):
    """A block whose attention branch can be told to do more."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.gate, self.inner = kind, nn.Linear(24, 24), nn.LayerNorm(24)
        self.alpha = nn.Parameter(torch.rand(24))
        self.out = Adapted(self.out) if kind == "adapter" else self.out

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        q, k, v = self.qkv(y).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        heads = heads * self.gate(y).sigmoid() if self.kind == "gate" else heads
        added = self.out(self.inner(heads) if self.kind == "norm" else heads)
        x = x + (self.alpha * added if self.kind == "scale" else added)
        return x + self.mlp(x)


class WithLayers(Own):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(kind) for _ in range(3)])


def with_adapters() -> nn.Module:
    module = timm_vit()()
    for block in module.blocks:
        block.attn.proj = Adapted(block.attn.proj)
    return module


OTHERS = {kind: lambda kind=kind: WithLayers(kind) for kind in ("gate", "adapter", "norm", "scale")} | {
    "adapters in a network of timm": with_adapters,
    "a norm within attention": lambda: timm_network("eva.Eva", scale_attn_inner=True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_block_that_adds_something_else_is_refused(name, images):
    torch.manual_seed(0)
    network = adapt(OTHERS[name]().eval(), 32)
    with pytest.raises(PresetError, match="what one linear map gives"):
        norm_attention(network, images)


def test_a_block_that_does_no_more_is_accepted(images):
    torch.manual_seed(0)
    assert norm_attention(adapt(WithLayers("").eval(), 32), images).isfinite().all()


def added(module: nn.Module, images: Tensor, place: nn.Module, only: int, inputs: bool) -> Tensor:
    """What a module of the last block gets (or gives) if the last self-attention hands over the values of one token."""
    own, calls, found = F.scaled_dot_product_attention, 0, list[Tensor]()

    def of_one_token(q: Tensor, k: Tensor, v: Tensor, *options: object, **more: object) -> Tensor:
        nonlocal calls
        if q.shape[2] == k.shape[2]:
            calls += 1
            if calls == 3:
                v = v * (torch.arange(v.shape[2]) == only)[:, None]
        return own(q, k, v, *options, **more)

    keep = place.register_forward_hook(lambda _, args, output: found.append(args[0] if inputs else output))
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(F, "scaled_dot_product_attention", of_one_token)
        module(images)
    keep.remove()
    return found[0]


@pytest.mark.parametrize("name", ["timm siglip", "timm pooling beside a class token", "timm layer scale, qk norm"])
def test_the_last_block_before_attention_pooling_has_its_own_projection(name, images):
    module = NETWORKS[name]()
    network = adapt(module, 32)
    prefix, place = network.config.num_prefix_tokens, module.blocks[-1].norm2
    nothing = added(module, images, place, -1, True)
    lengths = [
        (added(module, images, place, j, True) - nothing).norm(dim=2).mean(1) for j in range(prefix, prefix + 16)
    ]
    expected = torch.stack(lengths, 1).unflatten(1, (4, 4))
    torch.testing.assert_close(norm_attention(network, images, query=None), expected, atol=1e-5, rtol=1e-4)


def test_the_scale_of_each_parallel_branch_counts(images):
    layer = pytest.importorskip("timm").models.vision_transformer.ParallelThingsBlock
    module = timm_vit(block_fn=layer, init_values=0.5, depth=2)()
    network = adapt(module, 32)
    before = norm_attention(network, images)
    with torch.no_grad():
        module.blocks[-1].attns[-1].ls.gamma.mul_(3)
    torch.testing.assert_close(norm_attention(adapt(module, 32), images), 3 * before)


def test_a_network_that_casts_itself_is_held_to_the_precision_of_its_attention(images):
    class Casts(Own):
        def forward(self, images: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(images)

    torch.manual_seed(0)
    network = adapt(Casts().eval(), 32)
    assert network.config.depth == 3 and norm_attention(network, images).isfinite().all()
