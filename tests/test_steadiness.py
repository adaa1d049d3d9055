"""No test depends on the speed of the machine, or changes what other threads of its process use: see CONTRIBUTING."""

import ast
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parent
OWN = {"vit_demo", "recipes", "benchmarks"}

CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}
SLEEPS = {"sleep", "wait_for_timeout", "Timer"}
WAITS = {"alarm", "join", "result", "set_default_timeout", "settimeout", "wait", "wait_for"}

ALLOWED: dict[tuple[str, str], str] = {}
"""Where a pattern stays, and why: file and what is called or patched."""


def name_of(node: ast.AST) -> str:
    """``a.b.c`` of names and attributes; empty for anything else."""
    if isinstance(node, ast.Attribute):
        inner = name_of(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and bool(node.value)


def imported(tree: ast.Module, package: str) -> dict[str, str]:
    """What a file imports at its top: the full name of each name."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


@functools.cache
def resolve(name: str) -> Any:
    """The object of a full name, or None."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
            return functools.reduce(getattr, parts[end:], found)
        except (ImportError, AttributeError):
            continue
    return None


def is_own(target: Any) -> bool:
    """Whether an object belongs to the package, and not to a library that all threads share."""
    name = (
        target.__name__
        if isinstance(target, ModuleType)
        else getattr(target, "__module__", None) or type(target).__module__
    )
    return name.partition(".")[0] in OWN


def breaches(path: Path) -> Iterator[tuple[str, str]]:
    """What a file has of the patterns: the line with the rule, and what is called or patched."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = imported(tree, "")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = name_of(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        last = called.rpartition(".")[2]
        if last in SLEEPS:
            yield f"{path}:{node.lineno} sleeps", called
        elif last in CLOCKS and (called.startswith("time.") or "." not in called):
            yield f"{path}:{node.lineno} reads a clock", called
        numbers = [one.value for one in node.keywords if one.arg == "timeout"]
        if last in WAITS:
            numbers += node.args
        if any(map(is_number, numbers)):
            yield f"{path}:{node.lineno} counts on a speed", called
        if last == "setattr" and "." in called and node.args:
            target = node.args[0]
            if isinstance(target, ast.Constant):
                full = target.value.rpartition(".")[0]
                shown = target.value
            else:
                start, _, rest = name_of(target).partition(".")
                if start not in names:
                    continue
                full = ".".join(filter(None, (names[start], rest)))
                shown = f"{full}.{node.args[1].value if isinstance(node.args[1], ast.Constant) else '?'}"
            found = resolve(full)
            if found is None or not is_own(found):
                yield f"{path}:{node.lineno} patches a library", shown


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.relative_to(TESTS).as_posix())
def test_x(path):
    assert not list(breaches(path))
