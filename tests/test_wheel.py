"""The installed package works without the repository: weights, documentation and files of the page are in the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because setuptools writes into the folder that it builds."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("vit_demo", "checkpoints", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "requirements.txt"):
        shutil.copy(ROOT / name, source)
    run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out), str(source)], cwd=out)
    return next(out.glob("*.whl"))


def run(command: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
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
found = vit_demo.explore(paper, preset="digits-tiny", patch_size=4)
assert found.grid == (7, 7) and found.top(1)[0][0] == "1", found.top(3)
assert all(len(method_html(method)) > 200 for method in METHODS)
assert len(found._repr_html_()) > 100_000
print("works")
"""


def test_it_works_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    installed, folder = tmp_path / "installed", tmp_path / "folder"
    folder.mkdir()
    # Folders that other packages leave beside it are ignored.
    (installed / "docs").mkdir(parents=True)
    (installed / "checkpoints").mkdir()
    run(
        [*PIP, "install", "--no-deps", "--no-index", "--no-compile", "--target", str(installed), str(wheel)],
        cwd=folder,
    )
    (folder / "script.py").write_text(SCRIPT)
    out = run([sys.executable, "script.py", str(installed)], cwd=folder, PYTHONPATH=str(installed))
    assert out.strip().endswith("works")
    command = [str(installed / "bin" / "vit-demo"), "explain", "--help"]
    assert "examples:\n  vit-demo explain photo.jpg" in run(command, cwd=folder, PYTHONPATH=str(installed))
