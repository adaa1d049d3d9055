"""Models of the Hub in the command line, the API and the page."""

import asyncio
import threading
from dataclasses import replace

import gradio as gr
import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.service.engine import Engine, _engines, get_engine
from vit_demo.service.source import Source
from vit_demo.web.api import endpoints as api
from vit_demo.web.catalog import menu
from vit_demo.web.frontend.components import inputs
from vit_demo.web.requests.parse import ResultRequest
from vit_demo.web.requests.payload import payload
from vit_demo.weights import PRESETS, find_preset
from vit_demo.weights.hub.repository import is_on_machine

from ..asynchronous import PATIENCE, run
from ..replies import complete, handle


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)).save(path)
    return str(path)


@pytest.fixture
def cats(hub, published, monkeypatch):
    """A repository on the test Hub, and a new engine."""
    hub.repositories["someone/cats"] = published.files
    _engines.clear()
    yield "someone/cats"
    _engines.clear()


def test_the_command_line_shows_the_download(cats, photo, tmp_path, capfd):
    assert main(["explain", photo, "--preset", cats, "--out", str(tmp_path / "out")]) == 0
    out, error = capfd.readouterr()
    assert [line.split()[0] for line in out.splitlines()[:3]] == [
        label.split()[0] for label, _ in vit_demo.explore(photo, cats).top(3)
    ]
    assert "model.safetensors" in error and "100%" in error and "model.safetensors" not in out
    assert (tmp_path / "out" / "photo-libra_fullgrad.png").is_file()


def test_the_endpoints_take_a_repository(cats, photo, upload):
    found = run(api.predict(upload(Image.open(photo)), cats, 8))
    assert found["grid"] == [8, 8] and found["label"] in ("cat (0)", "dog", "cat (2)")
    assert get_engine().loaded == [], "custom models of visitors are not listed"


@pytest.mark.parametrize("name", ["HEADLESS", "/etc", "/nowhere", "../nothing", "vit_demo", "a/b/c", "."])
def test_the_endpoints_never_read_folders_of_the_server(headless, photo, upload, name):
    with pytest.raises(gr.Error, match="There is no preset"):
        run(api.predict(upload(Image.open(photo)), headless if name == "HEADLESS" else name, 0))


@pytest.mark.parametrize(
    ("setting", "space", "allowed"), [("0", "", False), ("", "", True), ("", "a/b", False), ("1", "a/b", True)]
)
def test_custom_models_can_be_disabled(cats, photo, upload, monkeypatch, setting, space, allowed):
    for name, value in (("VIT_DEMO_CUSTOM_MODELS", setting), ("SPACE_ID", space)):
        monkeypatch.delenv(name, raising=False)
        if value:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    config = inputs(digits_preset="digits-tiny").get_config()
    assert f'"customModels": {str(allowed).lower()}' in config["js_on_load"]
    assert ("result" in complete({"kind": "model", "name": cats})) is allowed
    if allowed:
        assert run(api.predict(upload(Image.open(photo)), cats, 8))["label"]
    else:
        with pytest.raises(gr.Error, match="There is no preset"):
            run(api.predict(upload(Image.open(photo)), cats, 8))


def test_a_model_without_a_classifier_head(headless, photo, upload, monkeypatch):
    ex = vit_demo.explore(photo, headless)
    assert (
        ex.logits.shape == (0,) and ex.top() == [] and not ex.is_confident and ex.rollout().shape == (32, 32)
    )  # of 224 pixels, as DINOv2 is published
    assert "published models of its type" in find_preset(headless).note  # no preprocessor_config.json
    shown = payload(ex, ResultRequest(Source("it", lambda: None), headless, ex.patch_size, "crop"))
    assert shown["predictions"]["labels"] == [] and shown["note"] == "" and shown["num_prefix_tokens"] == 5
    assert "class token + 4 registers = *1029 tokens*" in menu.patch_size_summary(find_preset(headless), 7)
    preset = replace(PRESETS["dinov2-s14"], **{
        field: getattr(find_preset(headless), field)
        for field in ("config", "repo", "source", "library", "structure", "patch_sizes", "default_patch_size")
    })  # fmt: skip
    monkeypatch.setitem(PRESETS, "dinov2-s14", preset)
    sent = upload(Image.open(photo))
    none = {"label": "", "is_confident": False, "confidences": [], "labels": []}
    assert run(api.predict(sent, "dinov2-s14", 0)) == none | {"preset": "dinov2-s14", "grid": [32, 32]}
    assert run(api.explain(sent, "dinov2-s14", 0, "rollout", -1, -1, -1, -1, ""))["label"] == ""


def test_the_page_gets_the_progress_of_a_download_in_bytes(cats, monkeypatch):
    monkeypatch.setattr("vit_demo.web.requests.waiting.POLL_SECONDS", 0.02)
    go_on = threading.Event()

    def slowly(preset, progress):
        progress("model.safetensors", 1_000_000, 3_000_000)
        assert go_on.wait(PATIENCE)

    monkeypatch.setattr("vit_demo.service.engine.fetch_files", slowly)
    sent = {"kind": "model", "name": cats}
    while (reply := handle(sent)) != {"done": 1_000_000, "total": 3_000_000}:
        assert reply == {"done": 0, "total": 0} or set(reply) == {"done", "total"}
    assert "result" in complete({"kind": "model", "name": "photos-tiny"}), "meanwhile everything else works"
    go_on.set()
    entry = complete(sent)["result"]
    assert entry["name"] == cats and entry["task"] == "photos"


def test_a_model_whose_weights_are_here_needs_no_download(cats, hub):
    assert not is_on_machine(replace(PRESETS["vit-s16"], repo="cats/tiny"))
    entry = complete({"kind": "model", "name": cats})["result"]
    assert entry["on_machine"] and is_on_machine(get_engine().ready(cats, trusted=False))
    before = list(hub.seen)
    assert "result" in complete({"kind": "model", "name": cats}) and hub.seen == before


def test_the_photo_tab_opens_with_the_large_model_where_its_weights_are(monkeypatch):
    assert menu.default_photo_preset() == "photos-tiny"
    monkeypatch.setattr(menu, "is_on_machine", lambda preset: True)
    assert menu.default_photo_preset() == "vit-s16"


def test_two_visitors_of_one_model_download_it_once(cats, photo, hub, upload):
    sent = upload(Image.open(photo))

    async def both():
        return await asyncio.gather(*(api.predict(sent, cats, 8) for _ in range(2)))

    first, second = run(both())
    assert first == second
    assert hub.gets("model.safetensors") == 1


def test_the_reason_of_a_failed_download_is_told(hub, photo, upload):
    assert "not on the Hub" in complete({"kind": "model", "name": "vit-ti16"})["error"]
    source = {"upload": upload(Image.open(photo))["path"], "preset": "vit-ti16", "patch_size": 16, "fit": "crop"}
    assert "not on the Hub" in complete({"kind": "result", "source": source})["error"]


def test_the_menu_lists_bundled_presets_first(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # a page of another test may have set it
    names = [entry["name"] for entry in menu.menu_entries() if entry["task"] == "photos"]
    assert names[0] == "photos-tiny" and names[1:] == [p.name for p in PRESETS.values() if p.is_downloaded]


def test_patch_sizes_that_were_never_trained_are_said():
    assert "Resampled" in menu.patch_size_summary(PRESETS["vit-ti16"], 8)
    trained = menu.patch_size_summary(PRESETS["vit-ti16"], 16) + menu.patch_size_summary(PRESETS["flexivit-s"], 8)
    assert "Resampled" not in trained


def test_old_models_are_evicted_from_memory(cats, headless, photo, monkeypatch):
    monkeypatch.setattr("vit_demo.inference.networks.MODEL_BYTES", 3_500_000)  # the first alone holds 2.4 MB
    engine = Engine("cpu")
    engine.explore(photo, cats)
    assert [key[0] for key in engine._models.list_keys()] == [cats]
    engine.explore(photo, headless)
    assert headless in [key[0] for key in engine._models.list_keys()] and engine._models.num_bytes <= 3_500_000
