"""A result in a notebook that Jupyter executed and exported as a web page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
CELLS = [
    "import vit_demo\nfrom vit_demo.web.catalog.example_digits import example_picture",
    "vit_demo.explore(example_picture(7), 'digits-small', 4)",
]
MAP = "() => [...document.querySelector('.stage').__stage.scene().map].join()"


def test_the_stage_reacts_in_an_exported_notebook(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbconvert = pytest.importorskip("nbconvert", reason="needs the package `nbconvert`")
    nbclient = pytest.importorskip("nbclient", reason="needs the package `nbclient`")
    pytest.importorskip("ipykernel", reason="needs the package `ipykernel`")
    from nbformat.v4 import new_code_cell, new_notebook

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = new_notebook(cells=[new_code_cell(code) for code in CELLS])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(html, encoding="utf-8")
    page.goto((tmp_path / "notebook.html").as_uri(), wait_until="commit")
    page.wait_for_selector(".jp-OutputArea iframe")
    frame = page.frames[-1]
    frame.wait_for_selector(".predictions .first")
    frame.wait_for_function("() => document.querySelector('.stage').__stage.scene()?.map")
    before = frame.evaluate(MAP)
    frame.locator(".picture").click(position={"x": 60, "y": 60})
    frame.wait_for_function(f"(before) => ({MAP})() !== before", arg=before)
