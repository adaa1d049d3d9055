"""A small network whose parts may be written in many ways, and such ways: pixels, answers, layouts."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
M, S = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
COLOURS = torch.tensor([[0.299, 0.587, 0.114], [-0.169, -0.331, 0.5], [0.5, -0.419, -0.081]])
GAIN = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(7))
ORDER = torch.randperm(16, generator=torch.Generator().manual_seed(8))

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From q, k and v, ``[B, H, N, d]``, to ``softmax(q k^T / sqrt(d)) v``."""


class Vit(nn.Module):
    """A small network each of whose parts may be written differently.

    Args:
        before: What it does to its pixels.
        order: Of its tokens: c for the class token, p for the patches, r for four registers.
        read: What its head reads of the tokens ``[B, N, D]``.
        attend: Its attention.
        put: What it returns, of itself, its tokens, what its head reads, and its logits.
        stem: Its patch embedding, from pixels to ``[B, D, rows, cols]``.
        tokens: From those to ``[B, N, D]``.
        run: How a block is called.
    """

    def __init__(
        self,
        before: Callable[[Tensor], Tensor] = lambda x: x,
        order: str = "cp",
        read: Callable[[Tensor], Tensor] = lambda x: x[:, 0],
        attend: Attend = F.scaled_dot_product_attention,
        put: Callable[..., Any] = lambda net, x, pooled, logits: logits,
        stem: Callable[[], nn.Module] = lambda: nn.Conv2d(3, 24, 8, 8),
        tokens: Callable[[Tensor], Tensor] = lambda x: x.flatten(2).mT,
        run: Callable[[nn.Module, Tensor], Tensor] = lambda block, x: block(x),
    ) -> None:
        super().__init__()
        self.before, self.order, self.read, self.put, self.tokens, self.run = before, order, read, put, tokens, run
        self.image_size, self.stem, self.place = 32, stem(), nn.Parameter(torch.randn(1, 16, 24))
        self.cls_token, self.registers = (nn.Parameter(torch.randn(1, n, 24)) for n in (1, 4))
        self.blocks = nn.ModuleList(Block(attend) for _ in range(2))
        self.norm, self.head, self.project = nn.LayerNorm(24), nn.Linear(24, 5), nn.Linear(24, 7)

    def forward(self, images: Tensor) -> Any:
        """What ``put`` makes of the pass."""
        x = self.tokens(self.stem(self.before(images))) + self.place
        parts = {"p": x, "c": self.cls_token.expand(len(x), -1, -1), "r": self.registers.expand(len(x), -1, -1)}
        x = torch.cat([parts[one] for one in self.order], 1)
        for block in self.blocks:
            x = self.run(block, x)
        pooled = self.read(self.norm(x))
        return self.put(self, x, pooled, self.head(pooled))


class Block(nn.Module):
    """Attention and an MLP, each with a norm before it."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend, self.qkv, self.out = attend, nn.Linear(24, 72), nn.Linear(24, 24)
        self.norm1, self.norm2 = nn.LayerNorm(24), nn.LayerNorm(24)
        self.mlp = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24))

    def forward(self, x: Tensor) -> Tensor:
        """Tokens ``[B, N, D]``."""
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


def as_given(x: Tensor) -> Tensor:
    """A wrapper that changes its own copy in place."""
    x = x.clone()
    x[:, 0] -= 0.5
    x[:, 1:] *= 2
    return x


NORMALISED = 0
WRAPPERS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "nothing": (lambda x: x, NORMALISED),
    "contiguous in another format": (lambda x: x.contiguous(memory_format=torch.channels_last), NORMALISED),
    "blue first, already normalised": (lambda x: x[:, [2, 1, 0]], NORMALISED),
    "v2.Normalize": (v2.Normalize(MEAN, STD), 1),
    "the deviation of each channel alone": (lambda x: x / S, 1),
    "the mean alone": (lambda x: x - M, 1),
    "Normalize, then blue first": (lambda x: v2.functional.normalize(x, MEAN, STD)[:, [2, 1, 0]], 1),
    "blue first, then Normalize": (lambda x: (x.flip(1) - M) / S, 1),
    "one mean for all": (lambda x: (x - 0.449) / 0.226, 1),
    "a batch norm of other numbers": (lambda x: F.batch_norm(x, M.flatten(), S.flatten() ** 2), 1),
    "in place, other for each channel": (as_given, 1),
    "stacked channels": (lambda x: torch.stack([(x[:, i] - MEAN[i]) / STD[i] for i in range(3)], 1), 1),
    "twice": (lambda x: ((x - M) / S - 0.5) / 0.5, 1),
    "over 127.5, less one": (lambda x: x / 127.5 - 1, 255),
    "less 128": (lambda x: x - 128, 255),
    "less 127.5, over 128": (lambda x: (x - 127.5) / 128, 255),
    "over 255, Normalize, blue first": (lambda x: ((x / 255 - M) / S).flip(1), 255),
    "times 0.00392": (lambda x: x * (1 / 255), 255),
    "float16 and back": (lambda x: ((x.half() - M.half()) / S.half()).float(), 1),
    "gamma": (lambda x: x.clamp(min=1e-4) ** 2.2, 1),
    "grey": (lambda x: x.mean(1, keepdim=True).expand(-1, 3, -1, -1), 1),
    "grey by a convolution": (lambda x: F.conv2d(x, COLOURS[:1, :, None, None]).repeat(1, 3, 1, 1), 1),
    "other colours": (lambda x: torch.einsum("oc,bchw->bohw", COLOURS, x), 1),
    "a mean picture": (lambda x: x - GAIN, 1),
    "a vignette": (lambda x: x * GAIN, 1),
    "its own mean and deviation": (lambda x: (x - x.mean((2, 3), True)) / x.std((2, 3), keepdim=True), 1),
    "from its least to its most": (lambda x: (x - x.amin()) / (x.amax() - x.amin()), 1),
    "tanh": (lambda x: torch.tanh(2 * x - 1), 1),
    "two channels of three": (lambda x: torch.cat([(x[:, :2] - 0.5) / 0.5, x[:, 2:] * 0], 1), 1),
    "whole levels": (lambda x: x.mul(255).byte().float() / 255, 1),
    "autocontrast": (v2.RandomAutocontrast(1.0), 1),
    "posterised": (lambda x: v2.functional.posterize((x * 255).byte(), 3) / 255, 1),
    "sharpened": (lambda x: x + 0.5 * (x - F.avg_pool2d(x, 3, 1, 1)), 1),
    "a smaller picture in the middle": (lambda x: F.pad(F.interpolate(x, (24, 24)), (4,) * 4), 1),
    "a crop, resized": (lambda x: v2.functional.resized_crop(x, 2, 2, 28, 28, [32, 32]), 1),
    "padded by reflection, cropped beside": (lambda x: F.pad(x, (4,) * 4, mode="reflect")[:, :, :32, 8:], 1),
    "resized to itself": (lambda x: F.interpolate((x - M) / S, (32, 32), mode="bilinear"), 1),
    "mirrored": (lambda x: (x.flip(3) - M) / S, 1),
    "quarters exchanged": (lambda x: x.roll((16, 16), (2, 3)), 1),
    "channels last": (lambda x: x.permute(0, 3, 1, 2), 1),
}  # fmt: skip
"""What a network does to its pixels, and up to what number its caller's own code gives them."""

Out = namedtuple("Out", "embedding scores")


@dataclass
class Answer:
    """What a network returns."""

    tokens: Tensor
    answer: Tensor
    loss: None = None


def soft(z: Tensor) -> Tensor:
    """Probabilities of classes of which one is right."""
    return z.softmax(1)


def like(net: Any, pooled: Tensor) -> Tensor:
    """Logits of a head of cosines."""
    return 10 * F.normalize(pooled, dim=1) @ F.normalize(net.head.weight, dim=1).T


OUTPUTS: dict[str, tuple[Callable[..., Any], Callable[[Any], Tensor]]] = {
    "logits": (lambda n, x, p, z: z, soft),
    "features first": (lambda n, x, p, z: (p, z), lambda o: soft(o[1])),
    "tokens first": (lambda n, x, p, z: [x, p, z], lambda o: soft(o[2])),
    "a projection first": (lambda n, x, p, z: (n.project(p), z), lambda o: soft(o[1])),
    "a named tuple": (lambda n, x, p, z: Out(p, z), lambda o: soft(o.scores)),
    "a dataclass": (lambda n, x, p, z: Answer(x, z), lambda o: soft(o.answer)),
    "a namespace in a tuple": (lambda n, x, p, z: (SimpleNamespace(y=z, f=p),), lambda o: soft(o[0].y)),
    "nested dictionaries": (lambda n, x, p, z: {"f": {"p": p}, "y": {"z": z}}, lambda o: soft(o["y"]["z"])),
    "logits, not the last": (lambda n, x, p, z: {"logits": z, "z": n.project(p)}, lambda o: soft(o["logits"])),
    "log_softmax": (lambda n, x, p, z: z.log_softmax(1), torch.exp),
    "nn.Softmax": (lambda n, x, p, z: nn.Softmax(1)(z), lambda o: o),
    "softmax in float64": (lambda n, x, p, z: z.double().softmax(1), lambda o: o),
    "softmax, for each token": (lambda n, x, p, z: n.head(x).softmax(2).mean(1), lambda o: o),
    "softmax in per cent": (lambda n, x, p, z: 100 * soft(z), lambda o: o / 100),
    "softmax, without its first class": (lambda n, x, p, z: soft(z)[:, 1:], lambda o: o),
    "softmax, smoothed": (lambda n, x, p, z: 0.9 * soft(z) + 0.02, lambda o: o),
    "softmax and logits": (lambda n, x, p, z: {"p": soft(z), "z": z}, lambda o: o["p"]),
    "sigmoid": (lambda n, x, p, z: z.sigmoid(), lambda o: o),
    "nn.Sigmoid in a tuple": (lambda n, x, p, z: (p, nn.Sigmoid()(z)), lambda o: o[1]),
    "sigmoid, clamped": (lambda n, x, p, z: z.sigmoid().clamp(0.01, 0.99), lambda o: o),
    "sigmoid in per cent": (lambda n, x, p, z: 100 * z.sigmoid(), lambda o: o / 100),
    "logsigmoid": (lambda n, x, p, z: F.logsigmoid(z), torch.exp),
    "hardsigmoid": (lambda n, x, p, z: F.hardsigmoid(z), lambda o: o),
    "one number": (lambda n, x, p, z: z[:, :1], torch.sigmoid),
    "one sigmoid": (lambda n, x, p, z: z[:, :1].sigmoid(), lambda o: o),
    "one sigmoid without an axis": (lambda n, x, p, z: z[:, 0].sigmoid(), lambda o: o),
    "a sigmoid and its opposite": (lambda n, x, p, z: torch.cat([1 - (s := z[:, :1].sigmoid()), s], 1), lambda o: o),
    "a temperature": (lambda n, x, p, z: z / 0.7, soft),
    "a temperature, then softmax": (lambda n, x, p, z: soft(z / 2), lambda o: o),
    "cosines": (lambda n, x, p, z: like(n, p), soft),
    "cosines in a tuple": (lambda n, x, p, z: (F.normalize(p, dim=1), like(n, p)), lambda o: soft(o[1])),
    "less their mean": (lambda n, x, p, z: z - z.mean(1, keepdim=True), soft),
    "adjusted by a prior": (lambda n, x, p, z: z - torch.linspace(0, 2, 5), soft),
    "two heads": (lambda n, x, p, z: {"kind": n.project(p), "animal": z}, lambda o: soft(o["animal"])),
    "another head of as many classes": (lambda n, x, p, z: (z, n.head(x.mean(1))), lambda o: soft(o[0])),
    "the mean of two heads": (lambda n, x, p, z: (z + n.head(x.mean(1))) / 2, soft),
    "the mean of two softmaxes": (lambda n, x, p, z: (soft(z) + soft(n.head(x.mean(1)))) / 2, lambda o: o),
    "with an energy": (lambda n, x, p, z: (z, z.logsumexp(1)), lambda o: soft(o[0])),
    "with an energy of one column": (lambda n, x, p, z: (z, z.logsumexp(1, True)), lambda o: soft(o[0])),
    "with a confidence": (lambda n, x, p, z: (z, soft(z).amax(1, True)), lambda o: soft(o[0])),
    "with its class": (lambda n, x, p, z: {"label": z.argmax(1), "y": z}, lambda o: soft(o["y"])),
    "the best three": (lambda n, x, p, z: z.topk(3), lambda o: o),
    "the best three as a tuple": (lambda n, x, p, z: tuple(soft(z).topk(3)), lambda o: o),
    "sorted": (lambda n, x, p, z: z.sort(1, descending=True)[0], lambda o: o[0]),
    "the class alone": (lambda n, x, p, z: z.argmax(1), lambda o: o),
    "one-hot": (lambda n, x, p, z: F.one_hot(z.argmax(1), 5).float(), lambda o: o),
    "classes first": (lambda n, x, p, z: z.T, lambda o: soft(o.T)),
    "another axis": (lambda n, x, p, z: z[:, None], lambda o: soft(o[:, 0])),
    "as a map": (lambda n, x, p, z: z[:, :, None, None], lambda o: soft(o[:, :, 0, 0])),
    "a tensor for each class": (lambda n, x, p, z: list(z.split(1, 1)), lambda o: soft(torch.cat(o, 1))),
    "numbers without a graph": (lambda n, x, p, z: z.detach(), soft),
    "numpy": (lambda n, x, p, z: z.detach().numpy(), lambda o: soft(torch.tensor(o))),
}  # fmt: skip
"""What a network returns, and the probabilities that its caller makes of that."""


def mean(x: Tensor) -> Tensor:
    """The mean of all tokens."""
    return x.mean(1)


CONVOLUTIONS = [(3, 8, 3, 2, 1), (8, 16, 3, 2, 1), (16, 24, 3, 2, 1)]
UNFOLD = nn.Unfold(8, stride=8)
LAYOUTS: dict[str, dict[str, Any]] = {
    "class token": {},
    "mean of all": {"read": mean},
    "mean of the patches beside a class token": {"read": lambda x: x[:, 1:].mean(1)},
    "no class token": {"order": "p", "read": mean},
    "class token last": {"order": "pc", "read": lambda x: x[:, -1]},
    "registers between": {"order": "crp"},
    "registers behind": {"order": "cpr"},
    "registers behind, mean": {"order": "pr", "read": lambda x: x[:, :16].mean(1)},
    "registers before, mean": {"order": "rp", "read": lambda x: x[:, 4:].mean(1)},
    "registers before the class token": {"order": "rcp", "read": lambda x: x[:, 4]},
    "registers alone are read": {"order": "rp", "read": lambda x: x[:, :4].mean(1)},
    "a register is read": {"order": "rp", "read": lambda x: x[:, 1]},
    "class token and mean": {"read": lambda x: (x[:, 0] + x[:, 1:].mean(1)) / 2},
    "the largest": {"order": "p", "read": lambda x: x.amax(1)},
    "mean and largest": {"order": "p", "read": lambda x: x.mean(1) + x.amax(1)},
    "generalised mean": {"order": "p", "read": lambda x: x.clamp(min=1e-3).pow(3).mean(1).pow(1 / 3)},
    "softmax over tokens": {"order": "p", "read": lambda x: (x * x[..., :1].softmax(1)).sum(1)},
    "the first patch": {"order": "p"},
    "the middle patches": {"order": "p", "read": lambda x: x.unflatten(1, (4, 4))[:, 1:3, 1:3].mean((1, 2))},
    "the upper half": {"order": "p", "read": lambda x: x[:, :8].mean(1)},
    "another order": {"tokens": lambda x: x.flatten(2).mT[:, ORDER]},
    "column by column": {"tokens": lambda x: x.mT.flatten(2).mT},
    "from the last to the first": {"tokens": lambda x: x.flatten(2).mT.flip(1)},
    "blocks of four": {"tokens": lambda x: x.unflatten(3, (2, 2)).unflatten(2, (2, 2)).transpose(3, 4).flatten(2).mT},
    "a stem of convolutions": {"stem": lambda: nn.Sequential(*(nn.Conv2d(*one) for one in CONVOLUTIONS))},
    "a kernel of 10": {"stem": lambda: nn.Conv2d(3, 24, 10, 8, 1)},
    "a kernel of 16": {"stem": lambda: nn.Conv2d(3, 24, 16, 8, 4)},
    "a dilated kernel": {"stem": lambda: nn.Conv2d(3, 24, 4, 8, dilation=2)},
    "two halves of channels": {"stem": lambda: nn.Conv2d(3, 24, 8, 8, groups=3)},
    "unfolded": {"stem": lambda: nn.Sequential(UNFOLD, nn.Unflatten(2, (4, 4)), nn.Conv2d(192, 24, 1))},
    "pooled pixels": {"stem": lambda: nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(3, 24, 4, 4))},
    "a blur before": {"stem": lambda: nn.Sequential(nn.Conv2d(3, 3, 3, 1, 1), nn.Conv2d(3, 24, 8, 8))},
    "a shift of four": {"before": lambda x: x.roll(4, 3)},
}  # fmt: skip
"""Arguments of ``Vit``."""
