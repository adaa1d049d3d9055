"""A result in a notebook that Jupyter exported as a web page; tests/test_notebook.py has one executed."""

from pathlib import Path

import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture

from .choosing import Page

MAP = "() => [...document.querySelector('.stage').__stage.scene().map].join()"


def test_the_stage_reacts_in_an_exported_notebook(page: Page, tmp_path: Path) -> None:
    nbconvert = pytest.importorskip("nbconvert", reason="needs the package `nbconvert`")
    formatters = pytest.importorskip("IPython.core.formatters", reason="needs the package `ipython`")
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    shown, about = formatters.DisplayFormatter().format(
        vit_demo.explore(example_picture(7), "digits-small", patch_size=4)
    )
    output = new_output("execute_result", shown, metadata=about, execution_count=1)
    notebook = new_notebook(cells=[new_code_cell("ex", execution_count=1, outputs=[output])])
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
