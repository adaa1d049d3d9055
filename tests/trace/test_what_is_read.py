"""Relevance begins with what the head reads, whatever its network has beside it: against Chefer's rule written out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_demo
from benchmarks.explicit import Explicit

from .networks import CLASSES, Own, own, randomize, timm_vit, transformers_network

pytestmark = pytest.mark.filterwarnings("ignore")
EVERY = torch.full((16,), 1 / 16)


class Dense(Own):
    """A network that says a class of each pixel; ``enlarge`` makes a map of pixels of one of patches."""

    def __init__(self, enlarge: Callable[[Tensor], Tensor], norm: bool = False) -> None:
        super().__init__()
        self.enlarge, self.norm = enlarge, nn.LayerNorm(24) if norm else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        for layer in self.layers:
            x = layer(x)
        return self.enlarge(self.head(self.norm(x)).mT.unflatten(2, (4, 4)))


class Weighted(Own):
    """A head that reads its tokens by weights that were learned."""

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head((x * LEARNED[:, None]).sum(1))


LEARNED = torch.arange(1.0, 17) / 136


def bilinear(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=8, mode="bilinear")


def nearest(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=8, mode="nearest")


def of_pixel(enlarge: Callable[[Tensor], Tensor], *pixels: tuple[int, int]) -> Tensor:
    """The share of each patch in the mean of some pixels, from a map of each patch alone."""
    shares = torch.stack([enlarge(one.reshape(1, 1, 4, 4))[0, 0] for one in torch.eye(16)])
    return torch.stack([shares[:, row, col] for row, col in pixels]).mean(0)


def siglip(name: str, **options: Any) -> nn.Module:
    CLASSES["SiglipVisionConfig"] = name
    try:
        return transformers_network("SiglipVisionConfig", **options)()
    finally:
        CLASSES["SiglipVisionConfig"] = "SiglipVisionModel"


def siglip_classifier() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    vision = {"image_size": 32, "patch_size": 8, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3}
    config = transformers.SiglipConfig(vision_config=vision | {"intermediate_size": 48}, num_labels=5)
    return randomize(transformers.SiglipForImageClassification(config))


class Beside(nn.Module):
    """A network with attention pooling, whose result is thrown away."""

    def __init__(self) -> None:
        super().__init__()
        self.vit = timm_vit(global_pool="map", class_token=False)()

    def forward(self, images: Tensor) -> Tensor:
        x = self.vit.forward_features(images)
        self.vit.pool(x)
        return self.vit.head(x.mean(1))


READ: dict[str, tuple[Callable[[], nn.Module], Any, Tensor]] = {
    "transformers' SigLIP that classifies": (siglip_classifier, None, EVERY),
    "a mean of SigLIP's tokens": (lambda: siglip("SiglipVisionModel"), lambda o: o.last_hidden_state.mean(1), EVERY),
    "some of SigLIP's tokens": (
        lambda: siglip("SiglipVisionModel"),
        lambda o: o.last_hidden_state[:, 4:8].mean(1),
        torch.zeros(16).index_fill(0, torch.arange(4, 8), 0.25),
    ),
    "pooling beside a mean": (Beside, None, EVERY),
    "a pixel, bilinear": (lambda: Dense(bilinear), lambda o: o[:, :, 13, 13], of_pixel(bilinear, (13, 13))),
    "a pixel, after a norm": (lambda: Dense(bilinear, True), lambda o: o[:, :, 13, 12], of_pixel(bilinear, (13, 12))),
    "a mask of three pixels, nearest": (
        lambda: Dense(nearest),
        lambda o: (o[:, :, 0, 0] + o[:, :, 9, 9] + o[:, :, 10, 9]) / 3,
        of_pixel(nearest, (0, 0), (9, 9), (10, 9)),
    ),
    "a pixel for each class": (
        lambda: Dense(bilinear), lambda o: o[:, 1, 11:16, 13], of_pixel(bilinear, (14, 13))
    ),
    "weights that were learned": (Weighted, None, LEARNED),
}  # fmt: skip


@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("name", READ)
def test_relevance_begins_with_the_shares_that_the_head_reads(name, is_short, images, monkeypatch):
    monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 1 << 18 if is_short else 0)
    make, output, start = READ[name]
    torch.manual_seed(0)
    module = make().eval()
    with Explicit() as seen:
        found = module(images.clone().requires_grad_())
        found = output(found) if output else getattr(found, "logits", found)
        scores = found[:, 3].sum()
    explainer = vit_demo.Explainer(module, output=output, labels=list(map(str, range(found.shape[1]))))
    expected = seen.relevance(scores, start.expand(2, -1)).unflatten(1, (4, 4))
    torch.testing.assert_close(explainer.maps(images, "relevance", 3), expected, atol=1e-7, rtol=1e-3)
    ex = explainer(images[0])
    assert ex.trace.pooling is None, "rollout and attention begin with the mean of all tokens"


def test_what_depends_on_the_picture_is_read_as_its_gradient_says(images):
    class Highest(Own):
        def forward(self, images: Tensor) -> Tensor:
            x = self.stem(images).flatten(2).mT + self.place
            for layer in self.layers:
                x = layer(x)
            self.last = x
            return self.head(x.amax(1))

    module = own()
    module.__class__ = Highest
    with Explicit() as seen:
        score = module(images[:1].clone().requires_grad_())[0, 2]
    size = torch.autograd.grad(score, module.last, retain_graph=True)[0].norm(dim=2)
    expected = seen.relevance(score, size / size.sum())
    found = vit_demo.Explainer(module).maps(images[:1], "relevance", 2)
    torch.testing.assert_close(found.flatten(), expected[0], atol=1e-7, rtol=1e-3)


BRANCHES: dict[str, tuple[Callable[[], dict[str, Any]], int]] = {
    "two branches": (lambda: {"block_fn": timm_vision_transformer().ParallelThingsBlock}, 2),
    "three branches": (lambda: {"block_fn": partial(timm_vision_transformer().ParallelThingsBlock, num_parallel=3)}, 3),
    "differential attention": (lambda: {"attn_layer": "diff", "num_heads": 2}, 2),
    "one after the other": (dict, 1),
}


def timm_vision_transformer() -> Any:
    return pytest.importorskip("timm").models.vision_transformer


@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("name", BRANCHES)
def test_rollout_of_branches_that_read_the_same_tokens_is_their_mean(name, is_short, images, monkeypatch, tmp_path):
    monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 1 << 18 if is_short else 0)
    options, count = BRANCHES[name]
    module = timm_vit(depth=2, **options())()
    with Explicit() as seen, torch.no_grad():
        module(images[:1])
    matrices = torch.stack(seen.matrices).mean(2).unflatten(0, (2, count)).mean(1)[:, 0]  # [blocks, N, N]
    one = torch.eye(17)
    expected = (matrices[1] + one) / 2 @ (matrices[0] + one) / 2
    explainer = vit_demo.Explainer(module)
    ex, (again, _) = explainer(images[0]), explainer.batch(images)
    ex.save(tmp_path / "result.safetensors")
    loaded = vit_demo.load_result(tmp_path / "result.safetensors")
    for one in (ex, again, loaded):
        torch.testing.assert_close(torch.tensor(one.rollout()).flatten(), expected[0, 1:], atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(
            torch.tensor(one.rollout(query=(1, 2))).flatten(), expected[7, 1:], atol=1e-6, rtol=1e-4
        )


class PoolsOwnMean(Own):
    """Attention pooling by a query of the tokens' mean, in two heads of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(24, 24), nn.Linear(24, 48)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        for layer in self.layers:
            x = layer(x)
        q = self.q(x.mean(1, keepdim=True)).unflatten(2, (2, 12)).transpose(1, 2)
        k, v = self.kv(x).unflatten(2, (2, 2, 12)).permute(2, 0, 3, 1, 4)
        return self.head(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(1))


POOLS: dict[str, Callable[[], nn.Module]] = {
    "timm": timm_vit(global_pool="map", class_token=False),
    "timm beside a class token": timm_vit(global_pool="map"),
    "transformers": lambda: siglip("SiglipVisionModel"),
    "own, two heads": PoolsOwnMean,
}


@pytest.mark.parametrize("heads_first", [False, True])
@pytest.mark.parametrize("name", POOLS)
def test_attention_pooling_has_relevance_of_its_own(name, heads_first, images):
    torch.manual_seed(0)
    module = POOLS[name]().eval()
    with Explicit() as seen:
        found = module(images.clone().requires_grad_())
        scores = getattr(found, "pooler_output", found)[:, 3].sum()
    both = [*seen.pooling, *seen.matrices]
    products = [x * slope for x, slope in zip(both, torch.autograd.grad(scores, both), strict=True)]
    bars = [one.mean(1).relu() if heads_first else one.relu().mean(1) for one in products]
    joint = torch.eye(bars[1].shape[1])
    for bar in bars[1:]:
        joint = joint + bar @ joint  # Chefer's rule for self-attention
    expected = F.pad(bars[0], (bars[1].shape[1] - bars[0].shape[2], 0)) @ joint  # and for the query of another
    given = {"label": lambda z: z[:, 3], "average_heads_first": heads_first}
    maps = vit_demo.Explainer(module).maps(images, "relevance", **given)
    torch.testing.assert_close(maps.flatten(1), expected[:, 0, -16:].detach(), atol=1e-6, rtol=1e-3)
