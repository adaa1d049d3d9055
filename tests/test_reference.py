"""The API reference is built from the docstrings as docs/reference.md says, without a warning and without a gap."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
MODULES = re.findall(r"^\| `(vit_demo[\w.]*)` \|", TEXT, re.MULTILINE)


def test_it_is_built_without_warnings(tmp_path):
    pytest.importorskip("pdoc", reason="needs the package `pdoc`")
    assert re.findall(r"^python .*$", TEXT, re.MULTILINE) == ["python -m scripts.reference out/reference"]
    # In a process of its own, because the script resolves the names that the package imports on first use.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-m", "scripts.reference"]
    done = subprocess.run([*command, str(tmp_path / "out" / "reference")], cwd=ROOT, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path / "out" / "reference").as_posix() for path in tmp_path.rglob("*.html")}
    assert {f"{name.replace('.', '/')}.html" for name in MODULES} <= pages
    page = (tmp_path / "out" / "reference" / "vit_demo.html").read_text(encoding="utf-8")
    assert "Raises" in page and 'id="explore"' in page and 'id="Exploration.relevance"' in page


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__ and module.__all__
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"
