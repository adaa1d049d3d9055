"""Networks whose attention is seen, and would be shown wrongly: each is refused, in every type of numbers."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import PresetError
from vit_demo.methods import attention_matrix
from vit_demo.trace import Trace, adapt

from .networks import Own, own

pytestmark = pytest.mark.filterwarnings("ignore")


class HeadsFirst(Own.Layer):
    """Attention over ``[H, B, N, d]``: a batch that is taken for heads."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 3, 0, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).permute(1, 2, 0, 3).flatten(2))


class TwoHeadsFirst(Own.Layer):
    """The same with as many heads as the proof has pictures."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 2, 12)).permute(2, 3, 0, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).permute(1, 2, 0, 3).flatten(2))


class LearnedQueries(Own.Layer):
    """A query for each place, whatever token is there."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(3, 16, 8))

    def forward(self, x: Tensor) -> Tensor:
        _, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        q = self.queries.expand(len(x), -1, -1, -1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class OfMaps(Own.Layer):
    """A block that takes a map of features, not tokens."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x.flatten(2).mT)
        q, k, v = self.qkv(y).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        added = self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + added.mT.unflatten(2, x.shape[2:])


class BetweenChannels(Own.Layer):
    """Attention between channels, of which a head has as many as there are tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(24, 3 * 48), nn.Linear(48, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 16)).permute(2, 0, 3, 4, 1)  # [B, H, 16, N]
        attention = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).softmax(-1)
        return x + self.out((attention @ v).permute(0, 3, 1, 2).flatten(2))


class Between(Own.Layer):
    """Attention, and a convolution between tokens that attention is not."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv1d(24, 24, 3, padding=1, groups=24)

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        return x + 0.1 * self.mix(x.mT).mT


class InPlace(Own.Layer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        x += self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x += self.mlp(x)
        return x


class HeadsAsModules(Own.Layer):
    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(24, 24)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            return (q @ k.mT / 8**0.5).softmax(-1) @ v

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([self.Head() for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.out(torch.cat([head(y) for head in self.heads], 2))


class ClassIntoPatches(Own.Layer):
    """A class token that is added to every patch beside attention."""

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        return torch.cat([x[:, :1], x[:, 1:] + 0.1 * x[:, :1]], 1)


class WithLayers(Own):
    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList([layer() for _ in range(3)])


class WithMaps(Own):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([OfMaps() for _ in range(3)])

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean((2, 3)))


class TwoLists(WithLayers):
    """A list of attentions, which return what is added, beside one of MLPs."""

    def __init__(self) -> None:
        super().__init__(Branch)
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(24, 24), nn.GELU()) for _ in range(3)])

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2) + self.place
        for layer, mlp in zip(self.layers, self.mlps, strict=True):
            x = x + layer(x)
            x = x + mlp(x)
        return self.head(x.mean(1))


class Branch(Own.Layer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class OneAtATime(Own):
    def forward(self, images: Tensor) -> Tensor:
        if len(images) > 1:
            raise IndexError("one at a time")
        return super().forward(images)


class WithClassToken(WithLayers):
    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__(layer)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 24))

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2) + self.place
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


class Serpentine(Own):
    """Tokens of every other row of patches from right to left."""

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        x = torch.where(torch.arange(x.shape[2])[:, None] % 2 == 1, x.flip(3), x)
        x = x.flatten(2).transpose(1, 2) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


WRONG: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a batch that is taken for heads": (lambda: WithLayers(HeadsFirst), "not softmax"),
    "two heads that are taken for a batch": (lambda: WithLayers(TwoHeadsFirst), "not softmax"),
    "queries that are not of tokens": (lambda: WithLayers(LearnedQueries), "not between its tokens"),
    "blocks that take maps": (WithMaps, "tokens of this network were not found"),
    "attentions in one list, MLPs in another": (TwoLists, "put both in a module"),
    "pictures one at a time": (OneAtATime, "cannot be traced .IndexError: one at a time"),
    "attention between channels": (lambda: WithLayers(BetweenChannels), "not between its tokens"),
    "a convolution between tokens": (lambda: WithLayers(Between), "something else mixes"),
    "a class token added to the patches": (lambda: WithClassToken(ClassIntoPatches), "something else mixes"),
    "tokens changed in place": (lambda: WithLayers(InPlace), "in place"),
    "heads that are modules": (lambda: WithLayers(HeadsAsModules), "modules of their own"),
    "every other row from right to left": (Serpentine, "row by row"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", WRONG)
def test_what_would_be_shown_wrongly_is_refused(name, dtype):
    make, words = WRONG[name]
    torch.manual_seed(0)
    with pytest.raises(PresetError, match=words):
        adapt(make().eval().to(dtype), 32)


def test_a_network_of_double_precision_is_exact(images):
    module = own().double()
    network, trace = adapt(module, 32), Trace()
    with torch.no_grad():
        assert torch.equal(network(images.double(), trace), module(images.double()))
    assert (attention_matrix(trace, 0).sum(-1) - 1).abs().max() < 1e-6


def test_weights_that_change_are_proved_again():
    class Gated(Own):
        def __init__(self) -> None:
            super().__init__()
            self.mix, self.gate = nn.Conv1d(24, 24, 3, padding=1), nn.Parameter(torch.zeros(()))

        def forward(self, images: Tensor) -> Tensor:
            x = self.stem(images).flatten(2).transpose(1, 2) + self.place
            for layer in self.layers:
                x = layer(x) + self.gate * self.mix(x.mT).mT
            return self.head(x.mean(1))

    torch.manual_seed(0)
    module = Gated().eval()
    assert adapt(module, 32).config.depth == 3
    with torch.no_grad():
        module.gate.fill_(1)
    with pytest.raises(PresetError, match="something else mixes"):
        adapt(module, 32)


def test_a_network_that_no_longer_attends_is_refused(images):
    module = own()
    network = adapt(module, 32)
    module.forward = lambda images: torch.zeros(len(images), 5)
    with pytest.raises(PresetError, match="No attention was seen"):
        network(images, Trace())
