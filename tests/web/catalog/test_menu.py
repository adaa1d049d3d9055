"""What the menu says of each model, against the networks, their training records and the documents."""

import re
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vit_demo import Trace
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import ANNOTATED_VIT, EINOPS_VIT, MNIST_FROM_SCRATCH, VIT_TINY
from vit_demo.sentences import Sentence
from vit_demo.web.catalog import menu
from vit_demo.web.catalog.menu import (
    EVERYDAY_PHOTOS,
    PUBLISHED_TOP1,
    accuracy_note,
    bundled_accuracy,
    model_entry,
    starting_points,
)
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import BUNDLED as BUNDLED_FOLDER
from vit_demo.weights.checkpoints import load_model, read_record

BUNDLED = [name for name, preset in PRESETS.items() if preset.is_bundled]


@pytest.mark.parametrize("name", BUNDLED)
def test_what_the_menu_counts_is_what_the_network_does(name: str) -> None:
    preset, entry = PRESETS[name], model_entry(PRESETS[name])
    assert [size["size"] for size in entry["sizes"]] == list(preset.patch_sizes)
    assert preset.default_patch_size == entry["default_patch_size"]
    for size in entry["sizes"]:
        model = load_model(preset, size["size"]).keep_sizes()
        images = torch.zeros(1, model.config.in_channels, preset.image_size, preset.image_size)
        with torch.no_grad(), Trace() as trace:
            model(images, patch_size=size["size"])  # resamples the kernel, once
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(images, patch_size=size["size"])
        tokens = trace.q[0].shape[2]
        assert size["tokens"] == tokens and isinstance(size["side"], int)
        assert size["side"] ** 2 + model.config.num_prefix_tokens == tokens
        assert 2 * size["operations"] == counter.get_total_flops()
        text = Sentence(size["text"])
        assert f"{size['side']} × {size['side']} patches" in text and f"*{tokens} tokens*" in text
        assert size["accuracy"] is None or f"Right on {size['accuracy']:.1f}" in Sentence(size["accuracy_text"])
    assert entry["num_blocks"] == len(trace.q) and entry["num_classes"] == len(preset.labels)
    assert entry["on_machine"]


def test_offline_only_models_that_are_here_are_offered(monkeypatch) -> None:
    monkeypatch.setattr(menu, "is_on_machine", lambda preset: False)
    small = model_entry(PRESETS["vit-s16"])
    assert small["megabytes"] == 88 and not small["on_machine"], "22 million parameters of four bytes"
    for offline in (False, True):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
        offered = {entry["name"] for entry in menu.menu_entries()}
        assert offered == {name for name, preset in PRESETS.items() if not (offline and preset.is_downloaded)}


def test_a_model_that_takes_words_has_no_classes_of_its_own() -> None:
    entry = model_entry(PRESETS["tinyclip-8m"])
    assert entry["takes_words"] and entry["num_classes"] == 0 and entry["words"] == list(PRESETS["tinyclip-8m"].labels)


@pytest.mark.parametrize("name", BUNDLED)
def test_every_figure_names_its_set(name):
    preset = PRESETS[name]
    for size in preset.patch_sizes:
        note, accuracy = accuracy_note(preset, size), bundled_accuracy(preset, size)
        if preset.name not in EVERYDAY_PHOTOS:
            assert accuracy == round(100 * read_record(preset, size)["test_accuracy"][str(size)], 2)
        what = "357 everyday photos" if preset.task == "photos" else "MNIST’s test digits"
        assert f"{accuracy:.1f}\u00a0%" in note and what in note and note.count("%") == 1
    assert accuracy_note(PRESETS["vit-b16"], 16) == accuracy_note(PRESETS["photos-tiny"], 24) == "", "not measured"


def test_the_figures_of_everyday_photos_are_those_beside_the_weights():
    (count, accuracies) = EVERYDAY_PHOTOS["photos-tiny"]
    table = (BUNDLED_FOLDER / "README.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if f"{count} everyday photos, all 50 classes" in line)
    assert [float(cell) for cell in row.split("|")[2:6]] == [accuracies[size] for size in (10, 12, 15, 20)]


@pytest.mark.parametrize("name", PUBLISHED_TOP1)
def test_the_published_figures_are_those_of_the_documentation(name):
    text = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    table = text[text.index("| patch | 8 ") :].split("\n\n")[0].splitlines()
    cells = {cell[0]: cell[1:] for cell in (line.strip("| ").split(" | ") for line in table)}
    assert PUBLISHED_TOP1[name] == dict(zip(map(int, cells["patch"]), map(float, cells[f"`{name}`"]), strict=True))
    note = re.sub("[\u2068\u2069]", "", PRESETS[name].note)
    assert f"ImageNet top-1 {PUBLISHED_TOP1[name][PRESETS[name].config.patch_size]}\u00a0%" in note


def test_every_notebook_and_preset_of_this_packages_network_is_a_starting_point() -> None:
    start = starting_points()
    networks = {
        entry["title"]: (ViTConfig(**{**start["defaults"], **entry["config"]}), entry["patch_size"])
        for entry in start["networks"]
    }
    notebooks = (VIT_TINY, MNIST_FROM_SCRATCH, EINOPS_VIT, ANNOTATED_VIT)
    (first, _), *others = networks.values()
    assert (first.image_size, first.in_channels, first.num_classes) == (28, 1, 10), "which Build can train"
    assert (first.patch_size, first.depth, first.num_heads, first.embed_dim, first.mlp_ratio) == (7, 4, 4, 64, 2)
    model = ViT(first)
    assert sum(parameter.numel() for parameter in model.parameters()) < start["limits"]["parameters"]
    assert [config for config, _ in others][:4] == list(notebooks)
    own = {name: preset for name, preset in PRESETS.items() if not preset.library}
    assert list(networks)[5:] == list(own) and "dinov3-s16" not in own
    for name, preset in own.items():
        config, patch_size = networks[name]
        assert (config, patch_size) == (preset.config_at(preset.default_patch_size), preset.default_patch_size)
