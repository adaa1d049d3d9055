"""The benchmarks, which no test runs, start, and name only what is there."""

import ast
import csv
import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main

OURS = ("benchmarks", "recipes", "vit_demo")
FILES = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_each_benchmark_can_be_asked_for_its_options(name: str, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    if name == "cluster":
        pytest.importorskip("ray", reason="needs the extra `serve`")
    if name in ("page", "drawing"):
        pytest.importorskip("playwright")
    monkeypatch.setattr(sys, "argv", ["benchmarks", name, "--help"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0 and "--" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--help"], 0), (["nothing"], 2)])
def test_without_a_name_all_are_listed(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    assert main() == code
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in BENCHMARKS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_from_this_project_exists(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in OURS:
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


def test_the_board_is_as_its_writer_writes_it() -> None:
    """The text is compared as it is, and the table with the areas of the file beside it, which are rounded."""
    board = importlib.import_module("benchmarks.board")
    docs = Path(__file__).parents[1] / "docs"
    text, file = ((docs / f"faithfulness.{kind}").read_text(encoding="utf-8") for kind in ("md", "csv"))
    records: dict[tuple[str, str], dict] = {}
    for row in csv.DictReader(file.splitlines()):
        record = records.setdefault((row["network"], row["method"]), {"image": 0, "areas": {}} | row)
        record["areas"][row["removal"]] = float(row["deletion"]), float(row["insertion"])
    written = [record | {"image": image} for record in records.values() for image in range(int(record["images"]))]
    networks = list(dict.fromkeys(network for network, _ in records))
    assert board.table(written, networks) == file
    start, end = text.index("| method |"), text.rindex("|\n") + 1
    whole = board.document(written, networks)
    assert text[:start] + text[end:] == whole[: whole.index("| method |")] + whole[whole.rindex("|\n") + 1 :]
    means = [re.findall(r"(-?\d\.\d{3}) ±|\| <a id=\"([^\"]*)\"", table) for table in (text[start:end], whole)]
    assert all(a[1] == b[1] and abs(float(a[0] or 0) - float(b[0] or 0)) < 0.0016 for a, b in zip(*means, strict=True))
