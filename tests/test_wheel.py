"""The installed package works without the repository: weights, documentation and files of the page are in the wheel."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest
import torch

from .distributions import installed_with

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because setuptools writes into the folder that it builds."""
    return built(copied(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which it is installed, beside folders that other packages leave there."""
    folder = tmp_path_factory.mktemp("installed")
    for name in ("docs", "checkpoints"):
        (folder / name).mkdir()
    run([*PIP, "install", "--no-deps", "--no-index", "--no-compile", "--target", str(folder), str(wheel)], folder)
    return folder


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(out)!r})"
    run([sys.executable, "-c", build], cwd=copied(tmp_path_factory.mktemp("source")))
    return next(out.glob("*.tar.gz"))


def copied(folder: Path) -> Path:
    """Copies what belongs to the repository."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyi")
    for name in ("vit_demo", "checkpoints", "docs", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "requirements.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def built(source: Path, out: Path) -> Path:
    run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out), str(source)], cwd=out)
    return next(out.glob("*.whl"))


def run(command: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_is_missing(wheel: Path) -> None:
    """A new package must be listed in pyproject.toml."""
    held = set(zipfile.ZipFile(wheel).namelist())
    needed = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "vit_demo").rglob("*")
        if path.suffix in {".py", ".js", ".css", ".html", ".json", ".svg", ".jpg"} and "__pycache__" not in path.parts
    }
    needed |= {f"vit_demo/_checkpoints/{path.name}" for path in (ROOT / "checkpoints").glob("*.safetensors")}
    needed |= {f"vit_demo/_docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    needed |= {"vit_demo/py.typed", "vit_demo/weights/imagenet_labels.txt"}
    assert needed <= held
    assert all(name.startswith(("vit_demo/", "vit_demo-")) for name in held), "nothing beside the package"


SCRIPT = """
import sys
from pathlib import Path

import numpy as np

import vit_demo
from vit_demo.methods import METHODS
from vit_demo.web.catalog.method_docs import method_html

assert Path(vit_demo.__file__).is_relative_to(sys.argv[1]), vit_demo.__file__
paper = np.full((280, 280), 255, np.uint8)
paper[40:240, 130:150] = 0
found = vit_demo.explore(paper, "digits-tiny", patch_size=4)
assert found.grid == (7, 7) and found.top(1)[0][0] == "1", found.top(3)
assert all(len(method_html(method)) > 200 for method in METHODS)
assert len(found._repr_html_()) > 100_000
print("works")
"""


def test_it_works_without_the_repository(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    out = run([sys.executable, "script.py", str(installed)], cwd=tmp_path, PYTHONPATH=str(installed))
    assert out.strip().endswith("works")
    command = [str(installed / "bin" / "vit-demo"), "explain", "--help"]
    assert "examples:\n  vit-demo explain photo.jpg" in run(command, cwd=tmp_path, PYTHONPATH=str(installed))


APP_ONLY = ("gradio", "pandas", "pi_heif", "matplotlib", "orjson", "cachetools", "starlette")

CORE = """
import importlib.util
import sys

import vit_demo
from vit_demo.cli import main

for name in sys.argv[2:]:
    assert importlib.util.find_spec(name) is None, name
ex = vit_demo.explore(sys.argv[1], patch_size=7)
assert ex.top(1)[0][0] == "7"
for method in vit_demo.methods():
    assert ex.heatmap(method).shape == (4, 4)
ex.overlay(ex.relevance()).save("overlay.png")
ex.save("result.npz")
assert vit_demo.load_result("result.npz").top(1) == ex.top(1)
ex.to_html("result.html")
vit_demo.report([ex], "report.html")
assert ex.faithfulness("relevance").deletion_area < 1
assert len(ex._repr_html_()) > 100_000
for needs in (lambda: ex.side_by_side(), lambda: ex.overlay(ex.relevance(), cmap="viridis")):
    try:
        needs()
    except vit_demo.errors.MissingPackageError as error:
        assert str(error).endswith('needs matplotlib: run pip install "vit_demo[app]".'), error
    else:
        raise AssertionError
assert main(["explain", sys.argv[1], "--out", "out"]) == 0
assert main(["serve"]) == 2
print("works")
"""


def test_the_package_alone_needs_nothing_of_the_app(wheel: Path, installed: Path, tmp_path: Path) -> None:
    """In an environment that holds its dependencies, and no more."""
    (site := tmp_path / "site").mkdir()
    required = [line for line in metadata_of(wheel).get_all("Requires-Dist", []) if "extra ==" not in line]
    packages = Path(torch.__file__).parents[1]
    for name in installed_with(required):
        for top in {Path(str(file)).parts[0] for file in metadata.files(name) or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(packages / top)
    (tmp_path / "script.py").write_text(CORE)
    picture = ROOT / "docs" / "images" / "seven.png"
    command = [sys.executable, "-S", "script.py", str(picture), *APP_ONLY]
    out = run(command, cwd=tmp_path, PYTHONPATH=os.pathsep.join((str(installed), str(site))))
    assert out.strip().endswith("works")
    assert len(list((tmp_path / "out").iterdir())) >= 2


def metadata_of(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
    return message_from_bytes(archive.read(name))


def test_the_registry_shows_a_description_without_what_is_for_spaces(wheel: Path) -> None:
    told = metadata_of(wheel)
    assert str(told.get_payload()).startswith("# vit_demo\n")
    assert told["Keywords"] and told["Classifier"] and told["License-Expression"] == "MIT"
    assert set(told.get_all("Provides-Extra", [])) == {"app", "mcp", "serve"}


def test_a_source_distribution_builds_the_same_wheel_and_holds_no_tests(
    sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "/tests" in name]
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (tmp_path / "wheel").mkdir()
    again = zipfile.ZipFile(built(source, tmp_path / "wheel"))
    first = zipfile.ZipFile(wheel)
    content = {one.filename: one.CRC for one in first.infolist() if not one.filename.endswith("RECORD")}
    assert {one.filename: one.CRC for one in again.infolist() if not one.filename.endswith("RECORD")} == content
