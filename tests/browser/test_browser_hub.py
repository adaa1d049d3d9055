"""From a photo to a prediction among 1,000 classes, with a Hub on this machine that serves small random weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import huggingface_hub
import pytest
import timm
import torch
from safetensors.torch import save

from vit_demo.inference.engine import reset_engines
from vit_demo.web import launch
from vit_demo.weights import PRESETS
from vit_demo.weights.hub_presets import IMAGENET_LABELS

from ..weights.hub_server import HubServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

READY = '.stage[data-ready="true"]'


def weights(**shape: int) -> bytes:
    torch.manual_seed(0)
    return save(timm.create_model("vit_tiny_patch16_224", **shape).state_dict())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    server = HubServer()
    small = {"architecture": "vit_tiny_patch16_224", "num_classes": 1000, "model_args": {"img_size": 64, "depth": 1}}
    server.repositories = {
        PRESETS["vit-ti16"].repo: {"model.safetensors": weights()},
        "someone/small": {
            "config.json": json.dumps(small).encode(),
            "model.safetensors": weights(img_size=64, depth=1),
        },
        "someone/swin": {
            "config.json": json.dumps({"architecture": "swin_tiny_patch4_window7_224"}).encode(),
            "model.safetensors": weights(img_size=64, depth=1),
        },
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", server.url)
        patch.setenv("HF_HUB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        yield server
    reset_engines()  # its networks are not the real ones
    server.close()


@pytest.fixture(scope="module")
def address(hub: HubServer) -> Iterator[str]:
    page = launch("127.0.0.1", wait=False)
    yield page.local_url
    page.close()


@pytest.fixture
def photos(page: Page, address: str) -> Page:
    page.goto(address)
    page.wait_for_selector(READY)
    page.get_by_role("tab", name="Photo").click()
    page.wait_for_function("document.querySelector('#model').innerText.includes('101 tokens')")
    return page


def choose(page: Page, title: str) -> None:
    page.locator("#preset input").click()
    page.get_by_role("option", name=title).click()


def name_own(page: Page, name: str) -> None:
    box = page.get_by_placeholder("org/name")
    box.fill(name)
    box.press("Enter")


def wait_for_prediction(page: Page, blocks: int) -> str:
    page.wait_for_function(
        "n => document.querySelector('.stage').dataset.ready === 'true'"
        " && document.querySelector('.stage').__stage.current()?.numBlocks === n",
        arg=blocks,
    )
    return page.locator(".bars .first .label").inner_text()


def test_a_visitor_gets_a_prediction_among_a_thousand_classes(photos: Page):
    choose(photos, "ViT-Ti/16, 1,000 classes")
    assert wait_for_prediction(photos, 12) in IMAGENET_LABELS
    assert photos.locator(".bars .number").first.inner_text().endswith("%")
    photos.wait_for_function("document.querySelector('#model').innerText.includes('197 tokens')")
    photos.locator("#patch-size").get_by_text("32", exact=True).click()
    photos.wait_for_function("document.querySelector('#model').innerText.includes('top-1 36.1')")


def test_a_visitors_own_model_and_the_way_back(photos: Page):
    """Typed wrongly, unsupported, right: a sentence each time, and the page goes on."""
    choose(photos, "Your own")
    message = photos.locator(".message")
    for name, sentence in {
        "cats": "not the name of a model on the Hub",
        "vit_demo/web": "vit_demo/web is not on the Hub",  # a folder of this server
        "nobody/nothing": "nobody/nothing is not on the Hub",
        "someone/swin": "swin_tiny_patch4_window7_224 is not supported",
    }.items():
        name_own(photos, name)
        photos.wait_for_function("s => document.querySelector('.message').innerText.includes(s)", arg=sentence)
        assert sentence in photos.locator("#model").inner_text(), "beside the box, too"
    name_own(photos, "https://huggingface.co/someone/small")
    assert wait_for_prediction(photos, 1) in IMAGENET_LABELS
    assert not message.inner_text() and photos.locator("#preset input").input_value() == "small"
    photos.locator("#patch-size").get_by_text("32", exact=True).click()
    photos.wait_for_function("document.querySelector('.stage').__stage.current()?.numPatches === 4")
    choose(photos, "Photos, 50 everyday things")
    wait_for_prediction(photos, 6)
    photos.get_by_placeholder("org/name").wait_for(state="hidden")
