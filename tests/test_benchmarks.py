"""The benchmarks, which no test runs, name only what is there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_from_this_project_exists(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in ("benchmarks", "vit_demo"):
            continue
        names = [alias.name for alias in node.names]
        if node.module == "vit_demo.serve":  # imports Ray
            source = Path(importlib.util.find_spec(node.module).origin).read_text(encoding="utf-8")
            found = {part.name for part in ast.parse(source).body if hasattr(part, "name")}
        else:
            module = importlib.import_module(node.module)
            found = {name for name in names if hasattr(module, name) or _is_module(f"{node.module}.{name}")}
        assert set(names) <= found, f"from {node.module}"


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
