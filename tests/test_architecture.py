"""The way of a stroke and of a click, as docs/architecture.md lists it, is that which a profiler sees."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import calls
from vit_demo.service.engine import _engines, get_engine

from .asynchronous import at_once

ROOT = Path(__file__).parent.parent
MOST = 25  # functions in which the way of a stroke or a click is told
ROW = re.compile(r"^\| \d+ \| (.*?) \| (.*?) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[str, list[str]]]:
    """What the server runs for each, in the order of the first calls: ``file function``."""
    _engines.clear()  # a profiler sees threads that begin after it
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        at_once(calls.main)
    parts = re.findall(r"^(\w+): \d+ functions of \d+ files\n((?:  .*\n)+)", printed.getvalue(), re.MULTILINE)
    yield {what: [line.strip() for line in lines.splitlines()] for what, lines in parts}
    get_engine().jobs.close(10)  # and goes on to see them
    _engines.clear()


def listed(column: int) -> list[str]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return [row[column].replace("`", "") for row in ROW.findall(text) if row[column].strip()]


@pytest.mark.parametrize(("column", "what"), [(0, "stroke"), (1, "click")])
def test_the_functions_of_the_server_run_in_the_order_of_the_table(column, what, seen):
    names = listed(column)
    assert 20 <= len(names) <= MOST
    server = [name for name in names if ".py " in name]
    order = [seen[what].index(name) for name in server]
    assert order == sorted(order) and len(set(order)) == len(order) >= 12


@pytest.mark.parametrize("column", [0, 1])
def test_the_functions_of_the_browser_are_in_their_files(column):
    for name in listed(column):
        file, function = name.split()
        if file.endswith(".js"):
            text = (ROOT / "vit_demo" / "web" / "frontend" / file).read_text(encoding="utf-8")
            assert re.search(rf"\b(function|const) {function}\b", text), name


def test_what_is_named_is_defined_in_the_file_that_is_said():
    text = " ".join((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split())
    files = {path.as_posix(): path for part in ("vit_demo", "tests") for path in (ROOT / part).rglob("*.*")}
    named = re.findall(r"`(\w+)` in `([\w/]+\.(?:py|js))`", text)
    assert len(named) > 5
    for name, file in named:
        found = [path.read_text(encoding="utf-8") for each, path in files.items() if each.endswith(f"/{file}")]
        defined = re.compile(rf"\b(?:function|const|def|class) {name}\b|^{name}\b.* = ", re.MULTILINE)
        assert any(map(defined.search, found)), f"{name} in {file}"
