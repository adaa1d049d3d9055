"""The notebook in docs/ runs from top to bottom, every claim in it is an assertion, and its stored outputs are true."""

import ast
import base64
import io
import sys
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("nbclient", reason="needs the package `nbclient`")
pytest.importorskip("ipykernel", reason="needs the package `ipykernel`")
import nbformat
from packaging.requirements import Requirement

from scripts.notebook import NOTEBOOK, ROOT, execute


def pictures(notebook: Any) -> list[np.ndarray]:
    found = [one.data for cell in notebook.cells for one in cell.get("outputs", []) if "data" in one]
    encoded = [data["image/jpeg"] for data in found if "image/jpeg" in data]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(one))), np.float32) for one in encoded]


def test_it_runs_from_top_to_bottom_and_gives_what_it_stores():
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    run = execute()
    assert not [one for cell in run.cells for one in cell.get("outputs", []) if one.get("name") == "stderr"]
    assert len(pictures(run)) == len(pictures(stored)) == 3, "run `python -m scripts.notebook`"
    for new, old in zip(pictures(run), pictures(stored), strict=True):
        assert new.shape == old.shape and np.abs(new - old).mean() < 2, "run `python -m scripts.notebook`"


def test_it_shows_a_result_and_needs_nothing_beyond_the_requirements():
    cells = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert "ex" in cells
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    required = {Requirement(line).name for line in (ROOT / "requirements.txt").read_text().splitlines()}
    packages = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert packages <= required | {"vit_demo", "PIL"}
