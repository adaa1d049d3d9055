"""The notebook in docs/ runs from top to bottom, and every claim in it is an assertion."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_it_runs_from_top_to_bottom(monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="needs the package `nbclient`")
    client = pytest.importorskip("nbclient", reason="needs the package `nbclient`")
    pytest.importorskip("ipykernel", reason="needs the package `ipykernel`")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "stored without outputs"
    client.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.fspath(ROOT)}}).execute()
    assert not [one for cell in notebook.cells for one in cell.get("outputs", []) if one.get("name") == "stderr"]
    pictures = [one for cell in notebook.cells for one in cell.get("outputs", []) if "image/png" in one.get("data", {})]
    assert len(pictures) == 3
