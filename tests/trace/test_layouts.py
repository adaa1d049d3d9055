"""Where tokens and their pixels are: each layout is supported exactly, or refused for its own reason."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_demo
from benchmarks.explicit import Explicit
from vit_demo.errors import PresetError
from vit_demo.methods import METHODS
from vit_demo.trace import Trace, adapt

from .networks import Own, own, randomize, timm_vit
from .test_silent_errors import WithLayers

pytestmark = pytest.mark.filterwarnings("ignore")


class Embedded(Own):
    """A network with a patch embedding of its own, for 32 pixels."""

    def __init__(self, stem: nn.Module, tokens: int = 16) -> None:
        super().__init__()
        self.stem, self.place = stem, nn.Parameter(torch.randn(1, tokens, 24))


class Prepared(Own):
    """A network that changes its pixels first."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.change = change

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(self.change(images))


class Cut(Own):
    """A network that cuts its patches out one by one."""

    def forward(self, images: Tensor) -> Tensor:
        squares = [images[:, :, i : i + 8, j : j + 8] for i in range(0, 32, 8) for j in range(0, 32, 8)]
        x = torch.stack([self.stem(one)[:, :, 0, 0] for one in squares], 1) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Unfolded(Own):
    """A network whose patches are those of ``nn.Unfold``, embedded by a linear map after a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.LayerNorm(192), nn.Linear(192, 24), nn.LayerNorm(24))

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(F.unfold(images, 8, stride=8).mT) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Beside(Own):
    """Patches, class token and registers in any order; its head is one of ``HEADS``."""

    def __init__(self, order: str, read: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.order, self.read = order, read
        self.cls_token, self.registers = nn.Parameter(torch.randn(1, 1, 24)), nn.Parameter(torch.randn(1, 4, 24))

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        parts = {"p": x, "c": self.cls_token.expand(len(x), -1, -1), "r": self.registers.expand(len(x), -1, -1)}
        x = torch.cat([parts[one] for one in self.order], 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.read(x))


def stem_of_convolutions() -> nn.Module:
    layers = [nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1)]
    return nn.Sequential(*layers)


SEEN: dict[str, tuple[Callable[[], nn.Module], int, int]] = {
    "patches cut out one by one": (Cut, 0, 0),
    "nn.Unfold": (Unfolded, 0, 0),
    "pixel_unshuffle": (lambda: Embedded(nn.Sequential(nn.PixelUnshuffle(8), nn.Conv2d(192, 24, 1))), 0, 0),
    "kernels smaller than patches": (lambda: Embedded(nn.Conv2d(3, 24, 6, 8)), 0, 0),
    "kernels larger than patches": (lambda: Embedded(nn.Conv2d(3, 24, 12, 8, 2)), 0, 0),
    "a stem of convolutions": (lambda: Embedded(stem_of_convolutions()), 0, 0),
    "a class token behind": (lambda: Beside("pc", lambda x: x[:, -1]), 1, 1),
    "class token, registers behind": (lambda: Beside("cpr", lambda x: x[:, 0]), 5, 4),
    "class token and registers behind": (lambda: Beside("pcr", lambda x: x[:, -5]), 5, 5),
    "registers before": (lambda: Beside("crp", lambda x: x[:, 0]), 5, 0),
    "class token behind, registers before": (lambda: Beside("rp", lambda x: x[:, 4:].mean(1)), 4, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_the_pixels_of_a_token_are_in_its_square(name, images):
    make, prefix, behind = SEEN[name]
    torch.manual_seed(0)
    module = make().eval()
    network = adapt(module, 32)
    assert (network.config.num_prefix_tokens, network.structure.suffix) == (prefix, behind)
    plain, trace = Trace(record_tokens=True), Trace(record_tokens=True)
    other = images.clone()
    other[:, :, 10:14, 18:22] += 3  # within row 1, column 2
    with torch.no_grad():
        torch.testing.assert_close(network(images, plain), module(images))
        network(other, trace)
    moved = (trace.tokens[0] - plain.tokens[0])[0].norm(dim=1)
    overlaps = network.structure.overlaps
    assert overlaps == (name in ("kernels larger than patches", "a stem of convolutions"))
    assert moved[prefix + 6] > 0 and not moved[:prefix].any() and (overlaps or int(moved.count_nonzero()) == 1)
    assert METHODS["relevance"].function(network, images, 3).shape == (2, 4, 4)


class Chunks(Own.Layer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        parts = [F.scaled_dot_product_attention(part, k, v) for part in q.chunk(2, 2)]
        return x + self.out(torch.cat(parts, 2).transpose(1, 2).flatten(2))


class Memory(Own.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.randn(1, 3, 4, 8))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        k, v = (torch.cat([one, self.memory.expand(len(x), -1, -1, -1)], 2) for one in (k, v))
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class SoftMixture(Own.Layer):
    """Soft MoE (Puigcerver et al., 2024): two experts of three slots each."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = nn.Parameter(torch.randn(24, 6))
        self.experts = nn.ModuleList([nn.Linear(24, 24) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        scores = x @ self.slots  # [B, N, 6]
        slots = scores.softmax(1).mT @ x
        slots = torch.cat([expert(part) for expert, part in zip(self.experts, slots.chunk(2, 1), strict=True)], 1)
        return x + scores.softmax(2) @ slots


class OtherHeads(Own.Layer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 2, 12)).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def heads_that_differ() -> nn.Module:
    module = WithLayers(Own.Layer)
    module.layers[1] = OtherHeads()
    return module


def overlapping(change: Callable[[Tensor], Tensor]) -> nn.Module:
    module = Prepared(change)
    module.stem = nn.Conv2d(3, 24, 10, 8, 1)
    return module


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "8 x 4 patches": (lambda: Embedded(nn.Conv2d(3, 24, (8, 4), (8, 4)), 32), "8 x 4 pixels"),
    "overlapping patches": (lambda: Embedded(nn.Conv2d(3, 24, 16, 8), 9), r"overlap \(16 pixels, 8 apart\)"),
    "heads that differ": (heads_that_differ, "numbers of heads"),
    "chunks of queries": (lambda: WithLayers(Chunks), "some of its queries at a time"),
    "memory": (lambda: WithLayers(Memory), "more keys than tokens"),
    "soft mixture of experts": (lambda: WithLayers(SoftMixture), "soft mixture of experts"),
    "torch.jit.trace": (lambda: torch.jit.trace(own(), torch.randn(1, 3, 32, 32)), "torch.jit"),
    "class token behind its registers": (lambda: Beside("prc", lambda x: x[:, -1]), "put its class token first"),
    "class token after registers": (lambda: Beside("rcp", lambda x: x[:, 4]), "put its class token first"),
    "a mirror": (lambda: Prepared(lambda x: x.flip(3)), "moves the pixels"),
    "columns": (lambda: Prepared(lambda x: x.mT), "moves the pixels"),
    "a shift of a patch": (lambda: Prepared(lambda x: x.roll(8, 2)), "moves the pixels"),
    "a shift of half a patch": (lambda: Prepared(lambda x: x.roll(4, 2)), "moves the pixels"),
    "a shift of half a patch whose patches overlap": (
        lambda: overlapping(lambda x: F.pad(x, (4,) * 4, mode="reflect")[:, :, :32, 8:]), "moves the pixels",
    ),
    "a crop and a resize": (
        lambda: Prepared(lambda x: F.interpolate(x[..., 4:-4, 4:-4], (32, 32), mode="bilinear")), "moves the pixels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_layout_is_refused_for_its_own_reason(name):
    make, words = REFUSED[name]
    torch.manual_seed(0)
    with pytest.raises(PresetError, match=words):
        adapt(make().eval(), 32)


@pytest.mark.parametrize(("outside", "inside"), [(48, 32), (40, 32), (96, 64), (36, 32)])
def test_a_crop_within_the_network_is_refused(outside, inside):
    margin = (outside - inside) // 2

    class Crops(Own):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images[:, :, margin : margin + inside, margin : margin + inside])

    module = Crops()
    if inside == 64:
        module.stem = nn.Conv2d(3, 24, 16, 16)
    with pytest.raises(PresetError, match=r"crops its pictures|moves the pixels"):
        adapt(module.eval(), outside)


def test_blip_is_seen_whole(images):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BlipVisionConfig(
        image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=48
    )
    module = randomize(transformers.BlipVisionModel(config))
    network = adapt(module, 32)
    with torch.no_grad():
        torch.testing.assert_close(network(images), module(images).pooler_output)
    assert network.config.class_token and network.config.num_classes == 0


def test_double_precision_has_an_output_projection():
    module, x = own(), torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))
    single = vit_demo.explore(x, module)
    maps = {name: single.heatmap(name) for name in ("norm_attention", "naclip")}
    double = vit_demo.explore(x, module.double())
    for name, values in maps.items():
        np.testing.assert_allclose(double.heatmap(name), values, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("order", "read", "drops"),
    [
        ("cp", lambda x: x[:, -16:].mean(1), False),
        ("cp", lambda x: x[:, 1:].mean(1), True),
        ("cp", lambda x: x[:, 1:17].mean(1), True),
        ("pr", lambda x: x[:, :16].mean(1), False),
        ("pr", lambda x: x[:, :-4].mean(1), True),
        ("rp", lambda x: x.mean(1), True),
        ("p", lambda x: x.sum(1) / 16, False),
        ("p", lambda x: x[:, :8].mean(1), False),
        ("p", lambda x: x.amax(1), True),
        ("pc", lambda x: x[:, 16], False),
        ("cp", lambda x: x[:, 0], True),
    ],
)
def test_patches_are_dropped_only_where_the_head_reads_the_rest(order, read, drops, images):
    torch.manual_seed(0)
    module = Beside(order, read).eval()
    network = adapt(module, 32)
    assert network.structure.drops == drops
    kept = torch.tensor([[0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15]])
    if not drops:
        with pytest.raises(PresetError, match="cannot be removed"):
            network(images[:1], kept_patches=kept)
        return
    with torch.no_grad():  # a plain loop over a sequence without those patches
        x = module.stem(images[:1]).flatten(2).mT + module.place
        parts = {"p": x[:, kept[0]], "c": module.cls_token, "r": module.registers}
        x = torch.cat([parts[one] for one in order], 1)
        for layer in module.layers:
            x = layer(x)
        patches = {"p": slice(0, 14), "r": slice(None), "c": slice(1, None)}[order[0]]
        is_slice = order in ("pr",) or (order == "cp" and network.config.pool == "mean")
        expected = module.head(x[:, patches].mean(1) if is_slice else read(x))
        torch.testing.assert_close(network(images[:1], kept_patches=kept), expected)


@pytest.mark.parametrize(
    ("order", "read", "tokens"),
    [
        ("p", lambda x: x[:, 0], [0]),
        ("p", lambda x: x[:, :8].mean(1), list(range(8))),
        ("cp", lambda x: x[:, 1:].unflatten(1, (4, 4))[:, 1:3, 1:3].mean((1, 2)), [6, 7, 10, 11]),
    ],
)
def test_relevance_begins_with_the_patches_that_the_head_reads(order, read, tokens, images):
    torch.manual_seed(0)
    module = Beside(order, read).eval()
    with Explicit() as seen:
        score = module(images[:1].clone().requires_grad_())[0, 3]
    gradients = torch.autograd.grad(score, seen.matrices)
    start = row = torch.zeros(1, seen.matrices[0].shape[-1]).index_fill(1, torch.tensor(tokens), 1 / len(tokens))
    for matrix, gradient in zip(reversed(seen.matrices), reversed(gradients), strict=True):
        row = row + row @ (matrix * gradient)[0].relu().mean(0)
    found = METHODS["relevance"].function(adapt(module, 32), images[:1], 3)
    torch.testing.assert_close(found.flatten(), (row - start)[0, -16:].detach(), atol=1e-7, rtol=1e-3)


def test_registers_that_are_averaged_are_no_class_token(images):
    module = timm_vit(class_token=False, reg_tokens=4, global_pool="avg", pool_include_prefix=True, fc_norm=True)()
    network = adapt(module, 32)
    assert (network.config.class_token, network.config.num_registers, network.config.pool) == (False, 4, "all")
    ex = vit_demo.explore(images[0], module)
    trace = Trace()
    with torch.no_grad():
        network(images[:1], trace)
    rows = trace.attention(-1)[0].mean((0, 1))[4:]  # the mean of all tokens, no register's
    np.testing.assert_allclose(ex.attention(-1).flatten(), rows, atol=1e-6)
