"""A small Vision Transformer whose layers are functions, and one of the same weights with another of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.methods import attnlrp, libra_fullgrad, naclip, relevance
from vit_demo.trace import adapt

WIDTH, HEADS, EPS = 24, 3, 1e-5
METHODS = [libra_fullgrad, attnlrp, relevance, naclip]
Function = Callable[..., Any]


class Layer(nn.Module):
    """A function with a weight and a bias, as a module."""

    def __init__(self, function: Function, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.function, self.weight, self.bias = function, nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight, self.bias)


class Vit(nn.Module):
    """A small Vision Transformer whose norms, activation, linear maps and attention are functions."""

    def __init__(
        self,
        norm: Function = lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b, EPS),
        act: Function = F.gelu,
        linear: Function = F.linear,
        attend: Function = F.scaled_dot_product_attention,
        run: Function = lambda block, x: block(x),
        gated: bool = False,
    ) -> None:
        super().__init__()
        self.run, self.patches = run, nn.Conv2d(3, WIDTH, 8, 8)
        self.cls, self.positions = (nn.Parameter(torch.randn(1, n, WIDTH) / 2) for n in (1, 17))

        def layer(outputs: int, inputs: int) -> Layer:
            return Layer(linear, torch.randn(outputs, inputs) / inputs**0.5, torch.randn(outputs) / 3)

        def block() -> Block:
            layers = layer(3 * WIDTH, WIDTH), layer(48, WIDTH), layer(WIDTH, 24 if gated else 48)
            return Block(attend, act, self.make_norm(norm), self.make_norm(norm), *layers)

        self.blocks = nn.ModuleList([block(), block()])
        self.norm, self.head = self.make_norm(norm), nn.Linear(WIDTH, 5)

    def make_norm(self, norm: Function) -> Layer:
        return Layer(norm, torch.rand(WIDTH) + 0.5, torch.randn(WIDTH) / 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = self.run(block, x)
        return self.head(self.norm(x)[:, 0])


class Block(nn.Module):
    def __init__(self, attend: Function, act: Function, norm1, norm2, qkv, fc1, fc2) -> None:
        super().__init__()
        self.attend, self.act, self.norm1, self.norm2 = attend, act, norm1, norm2
        self.qkv, self.fc1, self.fc2, self.proj = qkv, fc1, fc2, nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))


def pair(kind: str, plain: Function | None, written: Function, **shape: Any) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(1)
    reference = Vit(**({kind: plain} if plain else {}), **shape).eval()
    other = Vit(**{kind: written}, **shape).eval()
    other.load_state_dict(reference.state_dict())
    return reference, other


def check(reference: nn.Module, other: nn.Module, methods: Sequence[Function] = METHODS) -> None:
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(other(images), reference(images), atol=1e-5, rtol=1e-4)
    networks = [adapt(one, 32) for one in (reference, other)]
    for method in methods:
        expected, found = (method(network, images, 3) for network in networks)
        assert expected.std() > 1e-4
        most = 1e-3 * float(expected.abs().max())
        torch.testing.assert_close(found, expected, atol=most, rtol=0, msg=partial("{}: {}".format, method.__name__))
