"""Models of the Hub through the other doors: the command line, the endpoints, the page."""

from __future__ import annotations

import threading
from dataclasses import replace

import gradio as gr
import numpy as np
import pytest
import transformers
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.inference.engine import Explorer, explorer_on
from vit_demo.web import api, events
from vit_demo.web.payload import payload
from vit_demo.weights import PRESETS


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)).save(path)
    return str(path)


@pytest.fixture
def cats(hub, published, monkeypatch):
    """A repository on our own Hub, and an explorer that has not seen it."""
    hub.repositories["someone/cats"] = published.files
    explorer_on.cache_clear()
    yield "someone/cats"
    explorer_on.cache_clear()


@pytest.fixture
def nameless(tmp_path, randomise):
    """A folder that holds a model without classes."""
    config = transformers.Dinov2WithRegistersConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=3, image_size=28, patch_size=7
    )
    randomise(transformers.Dinov2WithRegistersModel(config)).save_pretrained(tmp_path / "nameless")
    return str(tmp_path / "nameless")


def test_the_command_line_explains_with_it_and_shows_the_download(cats, photo, tmp_path, capfd):
    assert main(["explain", photo, "--preset", cats, "--out", str(tmp_path / "out")]) == 0
    out, error = capfd.readouterr()
    assert [line.split()[0] for line in out.splitlines()[:3]] == [
        label.split()[0] for label, _ in vit_demo.explore(photo, cats).top(3)
    ]
    assert "model.safetensors" in error and "100%" in error and "model.safetensors" not in out
    assert (tmp_path / "out" / "photo-rollout.png").is_file()


def test_the_command_line_says_where_each_preset_comes_from(capsys):
    assert main(["presets"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["photos-tiny"].endswith("bundled")
    assert lines["vit-ti16"].endswith("timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k")


@pytest.mark.parametrize("command", ["train", "evaluate"])
@pytest.mark.parametrize("name", ["vit-ti16", "someone/cats"])
def test_others_models_are_not_trained_or_evaluated_here(command, name, tmp_path, capsys):
    assert main([command, name, "--data", str(tmp_path)]) == 2
    assert "Only bundled presets" in capsys.readouterr().err


def test_the_endpoints_take_a_repository(cats, photo):
    found = api.predict(photo, cats, 8)
    assert found["grid"] == [8, 8] and found["label"] in ("cat (0)", "dog", "cat (2)")


@pytest.mark.parametrize("name", ["NAMELESS", "/etc", "/nowhere", "../nothing", "vit_demo", "vit_demo/weights", "."])
def test_the_endpoints_do_not_touch_the_servers_folders(nameless, photo, name):
    with pytest.raises(gr.Error, match="There is no preset"):
        api.predict(photo, nameless if name == "NAMELESS" else name, 0)


def test_a_model_without_classes_everywhere(nameless, photo, monkeypatch):
    shown = payload(vit_demo.explore(photo, nameless))
    assert shown["top"] == [] and shown["note"] == "" and shown["prefix"] == 5
    assert "class token + 4 registers = **21 tokens**" in events.about_size(nameless, 7)
    preset = replace(PRESETS["dinov2-s14"], **{
        field: getattr(vit_demo.weights.find_preset(nameless), field)
        for field in ("config", "repo", "source", "patch_sizes", "default_patch_size")
    })  # fmt: skip
    monkeypatch.setitem(PRESETS, "dinov2-s14", preset)
    assert api.predict(photo, "dinov2-s14", 0) == {"label": "", "confidences": [], "grid": [4, 4]}
    assert api.explain(photo, "dinov2-s14", 0, "rollout", -1, -1, -1, -1, "")["label"] == ""


def test_the_page_says_how_far_a_download_is(hub, cats, monkeypatch):
    fetch, said = explorer_on().fetch, []

    def slowly(preset, progress):
        progress("model.safetensors", 1_000_000, 3_000_000)
        fetch(preset, progress)
        said.append("fetched")
        wait.wait(2)

    wait = threading.Event()
    monkeypatch.setattr(explorer_on(), "fetch", slowly)
    for sentence in events.fetching(cats):
        said.append(sentence)
        if sentence.endswith(" MB"):
            wait.set()
    assert any(f"Fetching {cats} from the Hub: " in sentence and sentence.endswith(" MB") for sentence in said)
    assert not list(events.fetching("photos-tiny"))


def test_a_failed_download_is_said_on_the_stage(hub, photo):
    assert not [said for said in events.fetching("vit-ti16") if "Fetching" not in said]
    stage = events.explain_anyway(None, photo, "vit-ti16", 16, "crop")
    assert stage["empty"] and "not on the Hub" in stage["message"]


def test_the_menu_lists_the_hub_after_what_is_bundled():
    names = [name for _, name in events.presets_for("photos")]
    assert names[0] == "photos-tiny" and names[1:] == [p.name for p in PRESETS.values() if p.source == "hub"]


def test_patch_sizes_that_were_never_trained_are_said():
    assert "Resampled" in events.about_size("vit-ti16", 8)
    assert "Resampled" not in events.about_size("vit-ti16", 16) + events.about_size("flexivit-s", 8)


def test_models_make_room_for_each_other(cats, nameless, photo, monkeypatch):
    monkeypatch.setattr("vit_demo.inference.engine.MODELS_BYTES", 2_500_000)  # the first alone weighs 2.4 MB
    explorer = Explorer("cpu")
    explorer.explore(photo, cats)
    assert explorer.loaded == [cats]
    explorer.explore(photo, nameless)
    assert explorer.loaded == [nameless]
