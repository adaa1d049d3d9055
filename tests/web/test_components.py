"""The Python side of the pad and the stage: what Gradio is told about them."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vit_demo.web
from vit_demo.web.components.pad import DIGITS, DigitPad, example_picture
from vit_demo.web.components.stage import SCRIPTS, STYLES, Stage

from ..asynchronous import run

UI = Path(vit_demo.web.__file__).parent


async def answer_to(request: object) -> dict[str, object]:
    return {"answer": request}


def test_examples_stay_on_the_paper() -> None:
    assert sorted(DIGITS) == list("0123456789")
    for strokes in DIGITS.values():
        points = np.array([point for stroke in strokes for point in stroke])
        assert points.min() > 0.1 and points.max() < 0.9
        assert all(len(stroke) >= 3 for stroke in strokes)


@pytest.mark.parametrize("digit", range(10))
def test_example_is_black_ink_in_the_middle_of_white_paper(digit: int) -> None:
    ink = 1 - np.asarray(example_picture(digit)) / 255
    assert ink.shape == (280, 280)
    assert ink[0].max() == 0 and ink.max() == 1
    assert 0.03 < ink.mean() < 0.25
    rows, columns = np.nonzero(ink > 0.5)
    assert abs(rows.min() + rows.max() - 279) < 30 and abs(columns.min() + columns.max() - 279) < 40


def test_pad_opens_with_its_example_as_value() -> None:
    value = DigitPad(example=3).value
    with Image.open(io.BytesIO(base64.b64decode(value.removeprefix("data:image/png;base64,")))) as picture:
        assert np.array_equal(np.asarray(picture), np.asarray(example_picture(3)))


def test_pad_can_open_empty() -> None:
    pad = DigitPad(example=None)
    assert pad.value is None
    assert pad.preprocess("") is None


def test_stage_hands_its_function_to_the_browser_by_name_only() -> None:
    config = Stage(ask=answer_to).get_config()
    assert config["server_fns"] == ["ask"] and "ask" not in config
    assert run(Stage(ask=answer_to).ask({"about": "logit_lens"})) == {"answer": {"about": "logit_lens"}}


def test_configs_are_json() -> None:
    for component in (DigitPad(), Stage(ask=answer_to), Stage({"empty": True}, ask=answer_to)):
        json.dumps(component.get_config())


def test_every_script_and_style_is_part_of_the_stage() -> None:
    assert {f"{name}.css" for name in STYLES} == {path.name for path in (UI / "components" / "stage").glob("*.css")}
    assert {f"{name}.js" for name in SCRIPTS} == {path.name for path in (UI / "components" / "stage").glob("*.js")}


@pytest.mark.parametrize(
    "path", [*UI.glob("components/*/*.html"), *UI.glob("components/*/*.css")], ids=lambda path: path.name
)
def test_templates_hold_nothing_that_gradio_would_evaluate(path: Path) -> None:
    assert not re.search(r"\$\{|\{\{|`|\\|@children", path.read_text(encoding="utf-8"))
