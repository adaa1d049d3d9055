"""The documentation lists every preset of the table, with its repository and licence."""

import re
from pathlib import Path

import pytest
import timm

from vit_demo.weights import PRESETS

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("document", ["README.md", "docs/models.md"])
def test_the_documentation_lists_all_presets_and_no_others(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [name for name in PRESETS if f"`{name}`" not in text] == []
    named = set(re.findall(r"`((?:digits|photos|vit|deit|flexivit|dinov2)-[a-z]+\d*)`", text))
    assert named <= {*PRESETS, "flexivit-pytorch"}


def test_the_documented_repositories_are_those_of_the_table():
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([\w-]+)` \| `([\w-]+/[\w.-]+)` \|", text, re.MULTILINE))
    assert documented == {preset.name: preset.repo for preset in PRESETS.values() if preset.is_downloaded}


def test_the_documented_licences_are_those_that_timm_names():
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `[\w-]+` \| `timm/([\w.]+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    words = {"apache-2.0": "Apache 2.0", "mit": "MIT", "dinov3-license": "Meta's DINOv3 licence"}
    assert documented == {name: words[timm.get_pretrained_cfg(name).license] for name in documented}
