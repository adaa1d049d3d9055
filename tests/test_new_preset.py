"""One entry in the table adds a preset everywhere, and the documentation lists every preset."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import timm

import vit_demo
from vit_demo.cli import main
from vit_demo.web.api import explanations as api
from vit_demo.web.catalog import menu
from vit_demo.weights import PRESETS, find_preset

from .asynchronous import run

ROOT = Path(__file__).parent.parent


@pytest.fixture(params=["digits-tiny", "photos-tiny", "vit-ti16"])
def added(request, monkeypatch):
    """A preset that was added to the table."""
    preset = replace(PRESETS[request.param], name="another", title="Another model")
    monkeypatch.setitem(PRESETS, preset.name, preset)
    return preset


def test_python_finds_it(added):
    assert vit_demo.presets()["another"] is added and find_preset("another") is added


def test_the_menu_lists_it_under_its_task(added):
    (entry,) = [entry for entry in menu.menu_entries() if entry["name"] == "another"]
    assert entry["title"] == "Another model" and entry["task"] == added.task and added.note in entry["summary"]
    assert [size["size"] for size in entry["sizes"]] == list(added.patch_sizes)
    assert entry["default_patch_size"] == added.default_patch_size


def test_the_api_lists_it(added):
    (entry,) = [preset for preset in run(api.presets()) if preset["name"] == "another"]
    assert entry["title"] == "Another model" and entry["patch_sizes"] == list(added.patch_sizes)


def test_the_command_line_lists_it(added, capsys):
    assert main(["presets"]) == 0
    assert "another" in [line.split()[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("document", ["README.md", "docs/models.md"])
def test_the_documentation_lists_all_presets_and_no_others(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [name for name in PRESETS if f"`{name}`" not in text] == []
    named = set(re.findall(r"`((?:digits|photos|vit|deit|flexivit|dinov2)-[a-z]+\d*)`", text))
    assert named <= {*PRESETS, "flexivit-pytorch"}


def test_the_documented_repositories_are_those_of_the_table():
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([\w-]+)` \| `(timm/[\w.]+)` \|", text, re.MULTILINE))
    assert documented == {preset.name: preset.repo for preset in PRESETS.values() if preset.source == "hub"}


def test_the_documented_licences_are_those_that_timm_names():
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `[\w-]+` \| `timm/([\w.]+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    words = {"apache-2.0": "Apache 2.0", "mit": "MIT", "dinov3-license": "Meta's DINOv3 licence"}
    assert documented == {name: words[timm.get_pretrained_cfg(name).license] for name in documented}
