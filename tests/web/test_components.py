"""The Python side of the components: what they send to the browser."""

import re
from pathlib import Path

import numpy as np
import pytest

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.frontend import assets
from vit_demo.web.frontend.assets import FOLDER


@pytest.mark.parametrize("digit", range(10))
def test_example_is_black_ink_in_the_middle_of_white_paper(digit: int) -> None:
    ink = 1 - np.asarray(example_picture(digit)) / 255
    assert ink.shape == (280, 280)
    assert ink[0].max() == 0 and ink.max() == 1
    assert 0.03 < ink.mean() < 0.25
    rows, columns = np.nonzero(ink > 0.5)
    if digit == 7:  # by its centre of mass
        rows, columns = (np.repeat(np.average(np.arange(280), weights=ink.sum(axis)), 2) for axis in (1, 0))
    assert abs(rows.min() + rows.max() - 279) < 30 and abs(columns.min() + columns.max() - 279) < 40


@pytest.mark.parametrize("path", [*FOLDER.rglob("*/*.html"), *FOLDER.rglob("*/*.css")], ids=lambda path: path.name)
def test_templates_hold_nothing_that_gradio_would_evaluate(path: Path) -> None:
    assert not re.search(r"\$\{|\{\{|`|\\|@children", path.read_text(encoding="utf-8"))


def test_style_sheets_lose_comments_and_needless_spaces_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(assets, "FOLDER", tmp_path)
    (tmp_path / "a.css").write_text(
        "/* A\n   b. */\na {\n  b: c; /* stays */ e: f\n    g; }\n\n@media (x) {\n  a,\n  h { b: d; } /* gone */\n}\n"
    )
    (tmp_path / "b.css").write_text("  /* gone */\n.b { content: '/* not one */'; }")
    shortened = "a {b: c; /* stays */ e: f\ng; }@media (x) {a,h { b: d; }}.b { content: '/* not one */'; }"
    assert assets.read_styles("a.css", "b.css") == shortened
