"""The programs of docs/examples are short, and run as they are; ``mypy`` checks them with the package."""

import runpy
import shutil
from pathlib import Path

import pytest
import timm
import torch

ROOT = Path(__file__).parent.parent
PROGRAMS = sorted((ROOT / "docs" / "examples").glob("*.py"))
MAX_LINES = 12
"""Lines of code, without imports and the docstring."""


def test_there_are_sixteen() -> None:
    assert len(PROGRAMS) == 16


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_program_runs_as_it_is(path: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    source = path.read_text("utf-8").split('"""')[2]
    code = [line for line in source.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(code) <= MAX_LINES
    for name in [line.split()[1] for line in source.splitlines() if line.startswith(("import", "from"))]:
        pytest.importorskip(name.partition(".")[0])
    (tmp_path / "photos").mkdir()
    shutil.copy(ROOT / "vit_demo" / "web" / "examples" / "cat.jpg", tmp_path / "photos")
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"\xff\xd8 no picture")
    monkeypatch.chdir(tmp_path)
    create = timm.create_model
    torch.manual_seed(0)

    def small(name: str, pretrained: bool = False, **options):
        """With random weights, because the weights would have to be downloaded, and few of them."""
        return create(name, depth=8, embed_dim=48, num_heads=3, **options)

    monkeypatch.setattr(timm, "create_model", small)
    runpy.run_path(str(path))
    written = list(tmp_path.glob("*.png"))
    assert capsys.readouterr().out or written
