"""The front matter of README.md is what a Hugging Face Space reads, and agrees with the rest of the repository."""

import re
import tomllib
from pathlib import Path

import pytest
from huggingface_hub import SpaceCard
from packaging.requirements import Requirement
from PIL import Image

from vit_demo.weights import PRESETS
from vit_demo.weights.hub.repository import CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE

ROOT = Path(__file__).parents[2]
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
HUB = [preset for preset in PRESETS.values() if preset.is_downloaded]


@pytest.fixture(scope="module")
def card() -> dict:
    return SpaceCard((ROOT / "README.md").read_text(encoding="utf-8")).data.to_dict()


ALLOWED = {
    "title": lambda v: v == "vit_demo",
    "emoji": lambda v: len(v) == 1,
    "colorFrom": COLOURS.__contains__,
    "colorTo": COLOURS.__contains__,
    "sdk": lambda v: v == "gradio",
    "sdk_version": lambda v: re.fullmatch(r"\d+\.\d+\.\d+", v),
    "python_version": lambda v: v == "3.12",  # the one that ZeroGPU and pyproject.toml have in common
    "app_file": lambda v: (ROOT / v).is_file(),
    "pinned": lambda v: v is False,
    "license": lambda v: v == "mit" and (ROOT / "LICENSE").read_text().startswith("MIT License"),
    "short_description": lambda v: len(v) <= 60,
    "thumbnail": lambda v: Image.open(ROOT / v).size[0] >= 600,
    "suggested_hardware": lambda v: v == "zero-a10g",  # ZeroGPU, the only one for free accounts; see test_zero_gpu.py
    "tags": lambda v: all(re.fullmatch("[a-z0-9-]+", tag) for tag in v) and len(set(v)) == len(v),
    "models": lambda v: all(re.fullmatch(r"[\w.-]+/[\w.-]+", repo) for repo in v),
    "preload_from_hub": lambda v: all(re.fullmatch(r"[\w.-]+/[\w.-]+ [\w.,-]+ [0-9a-f]{40}", line) for line in v),
}
"""Every key that the Space may have, and whether a value is one that Spaces accept."""


def test_every_key_and_value_is_one_that_spaces_accept(card):
    assert not card.keys() - ALLOWED.keys(), "unknown keys are ignored without a word"
    wrong = {key: value for key, value in card.items() if not ALLOWED[key](value)}
    assert not wrong
    assert ALLOWED.keys() == card.keys(), "every key above is set"


def test_gradio_has_the_version_of_the_requirements(card):
    pin = re.search(r"^gradio==(.+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert pin and card["sdk_version"] == pin[1]


def test_the_package_needs_what_the_requirements_pin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["app"]
    package = {one.name: one.specifier for one in map(Requirement, needed)}
    space = {one.name: one.specifier for one in map(Requirement, (ROOT / "requirements.txt").read_text().splitlines())}
    (pin,) = space.pop("gradio")
    assert pin.operator == "==" and pin.version in package.pop("gradio")
    assert package == space


def test_the_models_are_those_of_the_presets(card):
    assert card["models"] == [preset.repo for preset in HUB]


def test_what_is_preloaded_is_what_the_presets_load(card):
    """The same file of the same commit, so that the cache of the Space holds what ``hub.fetch`` looks for."""
    pinned = [preset for preset in HUB if re.fullmatch("[0-9a-f]{40}", preset.revision)]
    further = {True: f"{CONFIG_FILE},{TOKENIZER_FILE},", False: ""}
    assert card["preload_from_hub"] == [
        f"{preset.repo} {further[preset.takes_words]}{WEIGHTS_FILE} {preset.revision}" for preset in pinned
    ]
