"""From a photo to a prediction among 1,000 classes, with a Hub on this machine that serves small random weights."""

import json
import threading
from collections.abc import Callable, Iterator

import pytest
import timm
import torch
from safetensors.torch import save

from vit_demo.service.engine import _engines
from vit_demo.weights import PRESETS
from vit_demo.weights.imagenet import IMAGENET_LABELS

from ..asynchronous import PATIENCE, until
from ..weights.hub_server import HubServer, served
from .choosing import READY, STAGE, Page, launched


def weights(**shape: int) -> bytes:
    torch.manual_seed(0)
    return save(timm.create_model("vit_tiny_patch16_224", **shape).state_dict())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    small = {"architecture": "vit_tiny_patch16_224", "num_classes": 1000, "model_args": {"img_size": 64, "depth": 1}}
    repositories = {
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
    with served(tmp_path_factory.mktemp("cache")) as server:
        server.repositories = repositories
        yield server
    _engines.clear()  # its networks are not the real ones


@pytest.fixture(scope="module")
def address(hub: HubServer) -> Iterator[str]:
    with launched() as url:
        yield url


@pytest.fixture
def photos(page: Page, address: str) -> Page:
    page.goto(f"{address}#tab=photos")
    page.wait_for_selector(READY)
    page.wait_for_selector('.stage[data-state="done"]')
    page.wait_for_function(f"{STAGE}?.current()?.source.example === 'lion'")
    return page


def choose(page: Page, title: str) -> None:
    page.get_by_label("Model", exact=True).select_option(label=title)


def name_own(page: Page, name: str) -> None:
    box = page.get_by_placeholder("org/name")
    box.fill(name)
    box.press("Enter")


def wait_for_prediction(page: Page, blocks: int) -> str:
    page.wait_for_function(
        f"n => document.querySelector('.stage')?.dataset.state === 'done' && {STAGE}?.current()?.numBlocks === n",
        arg=blocks,
    )
    return page.locator(".bars .first .label").inner_text()


def test_a_slow_download_has_progress_and_cancel_and_leaves_the_page_alone(photos: Page, monkeypatch):
    """Megabytes and percentage; meanwhile the page answers, another model can be chosen, and Cancel stops it."""
    stopped = threading.Event()

    def slowly(preset: object, progress: Callable[[str, int, int], None]) -> None:
        try:
            until(lambda: progress("model.safetensors", 40_000_000, 88_000_000))  # which ends a cancelled download
        finally:
            stopped.set()

    monkeypatch.setattr("vit_demo.service.engine.fetch_files", slowly)
    before = wait_for_prediction(photos, 6)
    photos.get_by_role("button", name="Switch to ViT-S/16: 1,000 classes, 88 MB").click()
    photos.get_by_text("Downloading ViT-S/16, 1,000 classes: 40 of 88 MB, 45 %").wait_for()
    assert photos.locator(".bars .first .label").inner_text() == before
    assert photos.get_by_label("Model", exact=True).input_value() == "photos-tiny", "until the other one is there"
    photos.get_by_role("button", name="Goldfish").click()
    photos.wait_for_function(f"{STAGE}.current().source.example === 'goldfish'")
    photos.get_by_role("tab", name="Digit").click()
    photos.wait_for_selector('.stage[data-top1="7"]')
    photos.get_by_role("button", name="Cancel").click()
    photos.locator(".job").wait_for(state="hidden")
    assert stopped.wait(PATIENCE), "nobody polls any more"


def test_a_failed_download_keeps_the_result_and_can_be_repeated(photos: Page, hub: HubServer):
    kept = photos.locator(".stage").get_attribute("data-run")
    choose(photos, "ViT-B/16, 1,000 classes · download, 346 MB")
    photos.locator(".job", has_text="not on the Hub").wait_for()
    assert photos.locator(".stage").get_attribute("data-run") == kept
    photos.get_by_role("button", name="Retry").click()
    photos.locator(".job", has_text="not on the Hub").wait_for()
    photos.locator("[data-job=back]").click()
    photos.locator(".job").wait_for(state="hidden")
    assert photos.get_by_label("Model", exact=True).input_value() == "photos-tiny"


def test_a_visitor_gets_a_prediction_among_a_thousand_classes(photos: Page, address: str):
    choose(photos, "ViT-Ti/16, 1,000 classes · download, 23 MB")
    assert wait_for_prediction(photos, 12) in IMAGENET_LABELS
    assert photos.locator(".bars .number").first.inner_text().endswith("%")
    photos.locator("#patch-size").get_by_text("32", exact=True).click()
    photos.wait_for_function("document.querySelector('.about-model').textContent.includes('top-1 36.1')")
    # Another visitor with the link gets the same, and the one who chose it gets it again with the next visit.
    wait_for_prediction(photos, 12)
    shown = photos.locator(".stage").get_attribute("data-top1")
    other = photos.context.new_page()
    other.goto(photos.url)
    assert wait_for_prediction(other, 12) == shown
    assert other.evaluate(f"{STAGE}.current().numPatches") == 49
    again = photos.context.new_page()
    again.goto(address)
    again.get_by_role("tab", name="Photo").click()
    wait_for_prediction(again, 12)


def test_a_visitors_own_model_and_the_way_back(photos: Page):
    """Typed wrongly, unsupported, right: a sentence each time, and the page goes on."""
    kept = photos.locator(".stage").get_attribute("data-run")
    choose(photos, "Your own, from the Hub …")
    for name, sentence in {
        "cats": "not the name of a model on the Hub",
        "vit_demo/web": "vit_demo/web is not on the Hub",  # a folder of this server
        "nobody/nothing": "nobody/nothing is not on the Hub",
        "someone/swin": "is not supported, because it is not a Vision Transformer",
    }.items():
        name_own(photos, name)
        photos.locator(".job", has_text=sentence).wait_for()
        assert photos.locator(".stage").get_attribute("data-run") == kept, "the last good result stays"
    name_own(photos, "https://huggingface.co/someone/small")
    assert wait_for_prediction(photos, 1) in IMAGENET_LABELS
    assert photos.get_by_label("Model", exact=True).first.input_value() == "someone/small"
    photos.get_by_role("button", name="Compare", exact=True).click()
    photos.wait_for_function("document.querySelectorAll('.compare .column').length > 1")
    model = photos.locator(".compare .column").first.locator("[data-compare=preset]")
    assert model.evaluate("select => select.selectedOptions[0].textContent") == "small"
    photos.get_by_role("button", name="Explore", exact=True).click()
    photos.locator("#patch-size").get_by_text("32", exact=True).click()
    photos.wait_for_function(f"{STAGE}.current()?.numPatches === 4")
    other = photos.context.new_page()
    other.goto(photos.url)
    wait_for_prediction(other, 1)
    assert other.evaluate(f"{STAGE}.current().numPatches") == 4
    choose(photos, "Photos, 50 everyday things")
    wait_for_prediction(photos, 6)
    photos.get_by_placeholder("org/name").wait_for(state="hidden")
