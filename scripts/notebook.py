"""Runs ``docs/notebook.ipynb`` and stores its texts and pictures in it.

Usage: ``python -m scripts.notebook``
"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"

STORED = ("text/plain", "image/jpeg")
"""Kinds of output: not HTML, which would hold the scripts of the page, and not the same picture as PNG."""


def execute() -> nbformat.NotebookNode:
    """The notebook with the outputs of a run from top to bottom, without the network.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell raises.
    """
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    client = NotebookClient(notebook, timeout=120, record_timing=False, resources={"metadata": {"path": str(ROOT)}})
    client.execute(env=os.environ | environment)
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "data" in output:
            output.data = {kind: data for kind, data in output.data.items() if kind in STORED}
    notebook.metadata.language_info = {"name": "python"}  # without the version that ran it
    return notebook


if __name__ == "__main__":
    nbformat.write(execute(), NOTEBOOK)
