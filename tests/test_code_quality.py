"""Lint (complexity included), format, types, the direction of imports, and sizes of files and checkpoints."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_LINES = 400
MAX_CHECKPOINT_BYTES = 10_000_000


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("-m", "ruff", "check", "."), id="lint"),
        pytest.param(("-m", "ruff", "format", "--check", "."), id="format"),
        pytest.param(("-m", "mypy"), id="types"),
        pytest.param(
            ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"), id="imports-go-one-way"
        ),
    ],
)
def test_tool_finds_nothing(command):
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_of_code_can_be_read_in_one_sitting():
    sources = [p for suffix in ("py", "js") for p in (ROOT / "vit_demo").rglob(f"*.{suffix}")]
    lines = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in sources}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def test_checkpoints_are_small():
    sizes = {p.name: p.stat().st_size for p in (ROOT / "checkpoints").iterdir()}
    assert {name: size for name, size in sizes.items() if size > MAX_CHECKPOINT_BYTES} == {}
