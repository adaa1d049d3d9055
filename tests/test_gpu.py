"""On a real accelerator, where the machine has one: its numbers are the CPU's, whatever is asked for, and by whom."""

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn

import vit_demo
from vit_demo import metrics
from vit_demo.accelerator import best_device
from vit_demo.methods import METHODS
from vit_demo.model import ViT, ViTConfig
from vit_demo.trace import adapt
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .weights.model_folder import write_files
from .words.word_models import word_files

DEVICE = best_device()
FEW = {"local_surrogate": {"budget": 40}, "integrated_gradients": {"steps": 8}}
PHOTO = next(iter(EXAMPLE_PHOTOS.values())).path

pytestmark = pytest.mark.skipif(DEVICE.type == "cpu", reason="this machine has no accelerator")


@pytest.fixture(autouse=True)
def _whole_float32() -> Iterator[None]:
    """Products in float32, which torch shortens on some accelerators."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def close(found: Tensor | np.ndarray, expected: Tensor | np.ndarray, tolerance: float = 1e-3) -> bool:
    """Whether two results agree to a share of their largest value."""
    a, b = (torch.as_tensor(x).cpu().double() for x in (found, expected))
    return a.shape == b.shape and float((a - b).abs().max()) <= tolerance * float(b.abs().max()) + 1e-7


@pytest.fixture(scope="module", params=["own", "timm", "registers"])
def both(request: pytest.FixtureRequest) -> tuple[nn.Module, nn.Module]:
    """A network on the CPU and the same on the accelerator."""
    torch.manual_seed(0)
    if request.param == "own":
        here: nn.Module = ViT(ViTConfig(image_size=32, patch_size=8, num_classes=7, depth=3, embed_dim=48, num_heads=3))
    else:
        fields = {"img_size": 32, "patch_size": 8, "num_classes": 7, "embed_dim": 48, "depth": 3, "num_heads": 3}
        extra = {"reg_tokens": 2, "global_pool": "avg"} if request.param == "registers" else {}
        here = timm.models.VisionTransformer(**fields, **extra)
    with torch.no_grad():
        for parameter in here.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return here.eval(), copy.deepcopy(here).eval().to(DEVICE)


@pytest.mark.parametrize("method", METHODS)
def test_maps_are_the_cpus(method: str, both: tuple[nn.Module, nn.Module]):
    here, there = (vit_demo.Explainer(module) for module in both)
    x, options = torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(1)), FEW.get(method, {})
    targets = torch.tensor([0, 1, 2, 3, 6]) if METHODS[method].class_specific else None
    found = there.maps(x.to(DEVICE), method, targets, **options)
    assert found.device.type == DEVICE.type
    assert close(found, here.maps(x, method, targets, **options))


def test_curves_and_traces_are_the_cpus(both: tuple[nn.Module, nn.Module]):
    x, order = torch.randn(1, 3, 32, 32), torch.randn(4, 4)
    here, there = (adapt(module, (32, 32)) for module in both)
    expected = metrics.faithfulness(here, x, 1, order, torch.zeros_like(x))
    found = metrics.faithfulness(there, x.to(DEVICE), 1, order.to(DEVICE), torch.zeros_like(x, device=DEVICE))
    assert close(found.deletion, expected.deletion) and close(found.insertion, expected.insertion)


@pytest.mark.parametrize("preset", ["digits-tiny", "photos-tiny"])
def test_what_the_page_shows_is_the_cpus(preset: str):
    image = PHOTO if preset == "photos-tiny" else example_picture(7)
    here, there = (vit_demo.explore(image, preset, device=name) for name in ("cpu", str(DEVICE)))
    assert there.top(1)[0][0] == here.top(1)[0][0] and close(there.probabilities, here.probabilities)
    for method in ("attention", "rollout", "relevance", "libra_fullgrad", "attnlrp"):
        assert close(there.heatmap(method), here.heatmap(method)), method
    assert close(there.faithfulness().deletion, here.faithfulness().deletion, 0.01)


def test_four_threads_use_it_at_once():
    explainer = vit_demo.Explainer("photos-tiny", device=str(DEVICE))
    paths = [photo.path for photo in EXAMPLE_PHOTOS.values()][:4] * 3
    expected = [explainer(path).relevance() for path in paths]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda path: explainer(path).relevance(), paths))
    assert all(close(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_typed_words_are_the_cpus(kind: str, tmp_path: Path):
    folder = write_files(tmp_path, word_files(kind))
    words, others = ["a lion", "a cat"], ["a cat", "lion cat", "a lion"]
    here, there = (vit_demo.explore(PHOTO, folder, labels=words, device=name) for name in ("cpu", str(DEVICE)))
    for expected, found in [(here, there), (here.with_labels(others), there.with_labels(others))]:
        assert found.labels == expected.labels and close(found.probabilities, expected.probabilities)
        for method in ("relevance", "libra_fullgrad", "naclip"):
            assert close(found.heatmap(method, "a cat"), expected.heatmap(method, "a cat")), method


def test_half_precision_stays_near():
    torch.manual_seed(0)
    network = timm.create_model("vit_tiny_patch16_224").eval().to(DEVICE)
    x = torch.randn(2, 3, 224, 224, device=DEVICE)
    expected = vit_demo.Explainer(network).maps(x, "relevance", 3)
    found = vit_demo.Explainer(copy.deepcopy(network).bfloat16()).maps(x.bfloat16(), "relevance", 3)
    assert found.dtype == torch.float32
    assert np.corrcoef(found.cpu().flatten(), expected.cpu().flatten())[0, 1] > 0.9
