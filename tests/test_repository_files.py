"""What those need who carry the project on: changelog, citation, model cards, templates and workflows are sound."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import vit_demo
from vit_demo.version import __version__

ROOT = Path(__file__).parent.parent
CARDS = sorted((ROOT / "docs" / "model_cards").glob("*.md"))
PRESETS = vit_demo.presets()
OURS = [card for card in CARDS if PRESETS[card.stem].is_bundled]
FIGURE = re.compile(r"\d+\.\d+")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_and_the_changelog_are_of_this_version():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation.keys() >= {"cff-version", "message", "title", "authors"} and citation["version"] == __version__
    versions = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == "Unreleased" and __version__ in versions


def test_every_preset_of_ours_or_of_words_has_a_model_card():
    described = {name for name, preset in PRESETS.items() if preset.is_bundled or preset.takes_words}
    assert {card.stem for card in CARDS} == described


@pytest.mark.parametrize("card", [card for card in CARDS if card not in OURS], ids=lambda card: card.stem)
def test_a_card_of_another_s_model_names_its_source_and_says_nothing_that_the_preset_does_not(card):
    _, front, text = card.read_text(encoding="utf-8").split("---\n", 2)
    about, preset = yaml.safe_load(front), PRESETS[card.stem]
    assert about["base_model"] == preset.repo and preset.repo in text and f"# {preset.name}\n" in text
    names = {"mit": "MIT", "cc-by-nc-4.0": "CC BY-NC 4.0", "apache-2.0": "Apache-2.0"}
    assert preset.note.endswith(names[about["license"]] + " licence.")
    assert f"{preset.parameters / 1e6:.1f} M parameters ({4 * preset.parameters / 1e6:.0f} MB)" in " ".join(
        text.split()
    )
    (top1,) = re.findall(r"top-1 ([\d.]+) %", text)
    assert f"top-1 {top1}\u00a0%" in preset.note


@pytest.mark.parametrize("card", OURS, ids=lambda card: card.stem)
def test_a_model_card_describes_the_preset_and_gives_measured_figures(card):
    _, front, text = card.read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["license"] in ("mit", "other") and about["library_name"] == "vit_demo"
    assert ("license_name" in about) == (about["license"] == "other")
    preset = vit_demo.presets()[card.stem]
    assert f"# {preset.name}\n" in text
    header = re.search(r"^\| [^|]*% \| patch (.*) \|$", text, re.MULTILINE)
    assert header and tuple(map(int, header[1].split(" | "))) == preset.patch_sizes
    measured = set(FIGURE.findall(read("checkpoints/README.md")))
    assert set(FIGURE.findall(text)) <= measured, "figures come from checkpoints/README.md"


def test_every_file_that_code_and_documents_name_is_there():
    folders = ("vit_demo", "docs", "tests", "recipes", "benchmarks", "scripts", "checkpoints", ".github", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths = {path.relative_to(ROOT).as_posix() for path in [*files, *ROOT.glob("*.*")]}
    ends = {path.split("/", count)[-1] for path in paths for count in range(path.count("/") + 1)}
    named = re.compile(r"(?<![\w/.:])[\w-]+(?:/[\w.-]+)+\.(?:py|js|css|md|cfg)\b")
    for path in files:
        if path.suffix in (".py", ".js", ".css", ".md") and "tests" not in path.parts:
            for name in named.findall(path.read_text(encoding="utf-8")):
                assert name in ends or re.search(r"\b[A-Z]+\b(?!\.md)", name), f"{path} names {name}"


def test_nothing_that_a_workflow_or_a_test_installs_can_change_by_itself():
    for path in ROOT.glob(".github/workflows/*.yml"):
        (job,) = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used), path.name
        secret = [step for step in job["steps"] if "secrets." in str(step)]
        assert str(job).count("secrets.") == sum(str(step).count("secrets.") for step in secret), (
            "in no job's environment"
        )
        assert all("hf upload" in step["run"] for step in secret)
    packages = json.loads(read("package-lock.json"))["packages"]
    assert packages[""]["devDependencies"] == json.loads(read("package.json"))["devDependencies"]
    assert all(package["integrity"].startswith("sha512-") for name, package in packages.items() if name)
    assert "npm ci" in read(".ci/run")


def test_the_workflows_run_what_ci_runs_and_then_sync_the_space(tmp_path):
    test = yaml.safe_load(read(".github/workflows/test.yml"))
    steps = test["jobs"]["test"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert runs[0] == "bash .ci/run" and runs[-1].startswith(".venv/bin/python -m vit_demo ") and len(runs) == 3
    assert "requirements.lock requirements-torch.lock" in runs[1] and steps[-3]["with"]["path"] in runs[1], "the SBOM"
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    assert test["permissions"] == {"contents": "read"}
    space = yaml.safe_load(read(".github/workflows/space.yml"))
    assert space[True]["workflow_run"]["workflows"] == [test["name"]]  # YAML reads the key `on` as true
    runs = [step["run"] for step in space["jobs"]["sync"]["steps"] if "run" in step]
    readme = tmp_path / "README.md"
    readme.write_text(read("README.md"), encoding="utf-8")
    environment = os.environ | {"SPACE": "someone/demo", "COLUMNS": "200"}
    subprocess.run(["bash", "-c", runs[0]], cwd=tmp_path, env=environment, check=True)
    front = yaml.safe_load(readme.read_text(encoding="utf-8").split("---\n")[1])
    assert front["thumbnail"] == "https://huggingface.co/spaces/someone/demo/resolve/main/docs/images/page.png"
    options = set(re.findall(r"--[\w-]+", runs[-1]))
    command = [sys.executable, "-m", "huggingface_hub.cli.hf", "upload", "--help"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout
    assert options and all(option in shown for option in options)
