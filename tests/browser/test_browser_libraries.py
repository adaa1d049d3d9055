"""Networks that timm and transformers build, on the page: each section, with the package's numbers and true words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import huggingface_hub
import numpy as np
import pytest
import timm
import torch
import transformers
from timm.models import save_for_hf

import vit_demo
from vit_demo.inference.shared import reset_engines
from vit_demo.web import launch
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from ..weights.hub_server import HubServer

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from torch import nn

SHAPE = {"img_size": 64, "depth": 2, "embed_dim": 48, "num_heads": 3}
LABELS = ["lion", "tiger", "cat", "dog", "car"]
STAGE = "document.querySelector('.stage').__stage"
READY = '.stage[data-ready="true"]'


def randomized(network: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape)
    return network.eval()


def save_timm(folder: Path, architecture: str) -> None:
    network = randomized(timm.create_model(architecture, num_classes=len(LABELS), **SHAPE))
    config = {"label_names": LABELS, "pretrained_cfg": {**network.pretrained_cfg, "input_size": (3, 64, 64)}}
    save_for_hf(network, folder, config, model_args=SHAPE, safe_serialization=True)


def save_transformers(folder: Path) -> None:
    shape = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
    config = transformers.SiglipVisionConfig(image_size=64, patch_size=16, **shape)
    randomized(transformers.SiglipVisionModel(config)).save_pretrained(folder)
    transformers.SiglipImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Repositories by name."""
    found = {name: tmp_path_factory.mktemp(name) for name in ("dinov3", "siglip", "siglip-tower")}
    save_timm(found["dinov3"], "vit_small_patch16_dinov3")
    save_timm(found["siglip"], "vit_base_patch16_siglip_224")
    save_transformers(found["siglip-tower"])
    return found


@pytest.fixture(scope="module")
def address(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = HubServer()
    for name, folder in folders.items():
        server.repositories[f"someone/{name}"] = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", server.url)
        patch.setenv("HF_HUB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        page = launch("127.0.0.1", wait=False)
        yield page.local_url
        page.close()
    reset_engines()
    server.close()


def open_section(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def shown(page: Page) -> np.ndarray:
    """The map on the stage."""
    page.evaluate("new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    return np.array(page.evaluate(f"Array.from({STAGE}.scene().map)")).reshape(4, 4)


def point_at(page: Page, selector: str, row: int, column: int) -> tuple[float, float]:
    canvas = page.locator(selector).first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return box["x"] + (column + 0.5) * box["width"] / 4, box["y"] + (row + 0.5) * box["height"] / 4


def percent(text: str) -> float:
    return float(text.split("\u00a0%")[0].split()[-1])


@pytest.mark.parametrize("name", ["dinov3", "siglip", "siglip-tower"])
def test_each_section_shows_a_network_of_another_library(name: str, page: Page, address: str, folders: dict[str, Path]):
    errors: list[str] = []
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    result = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, str(folders[name]))
    page.goto(f"{address}#tab=photos&model=someone/{name}&photo=lion")
    page.wait_for_selector(READY)
    page.wait_for_function(f"name => {STAGE}?.current()?.source.preset === name", arg=f"someone/{name}")
    stage, look = page.locator("#stage"), page.locator("#stage .look")

    # Attention: of no patch, under the pointer, of a patch; then rollout.
    np.testing.assert_allclose(shown(page), result.attention(), atol=1e-4)
    default = "class token" if name == "dinov3" else "query of attention pooling"
    assert look.locator(".subject").inner_text().startswith(default)
    page.mouse.move(*point_at(page, "#stage .picture", 1, 2))
    np.testing.assert_allclose(shown(page), result.attention(), atol=1e-4)
    assert percent(look.locator(".value").inner_text()) == pytest.approx(100 * result.attention()[1, 2], abs=0.06)
    page.mouse.click(*point_at(page, "#stage .picture", 1, 2))
    page.wait_for_function(f"{STAGE}.scene().view.query === 6")
    np.testing.assert_allclose(shown(page), result.attention(query=(1, 2)), atol=1e-3)
    page.keyboard.press("Escape")
    assert shown(page) == pytest.approx(result.attention(), abs=1e-4)
    print(stage.inner_text())
    for section in ("Features", "Compare", "Step by step", "Build"):
        open_section(page, section)
        page.wait_for_timeout(1500)
        print("=" * 30, section, stage.inner_text())
        page.screenshot(path=f"/tmp/pt/{name}-{section}.png", full_page=True)
    assert not errors
    assert json
