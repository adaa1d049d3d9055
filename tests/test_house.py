"""The house stays in order: lint, format, types, layers, and the length of a file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("-m", "ruff", "check", "."), id="lint"),
        pytest.param(("-m", "ruff", "format", "--check", "."), id="format"),
        pytest.param(("-m", "mypy"), id="types"),
        pytest.param(("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"), id="layers"),
    ],
)
def test_tool_finds_nothing(command):
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_holds_two_ideas():
    sources = [p for ending in ("py", "js", "css") for p in (ROOT / "vit_demo").rglob(f"*.{ending}")]
    long = {str(p.relative_to(ROOT)): n for p in sources if (n := len(p.read_text().splitlines())) > 310}
    assert not long


def test_no_large_file_is_shipped():
    heavy = [p.name for p in (ROOT / "checkpoints").iterdir() if p.stat().st_size > 10_000_000]
    assert not heavy
