"""The Python side of the components: what they send to the browser."""

import base64
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradio import HTML
from PIL import Image

from vit_demo.methods import METHODS
from vit_demo.web.catalog.example_digits import DIGITS, example_picture
from vit_demo.web.frontend import assets
from vit_demo.web.frontend.assets import FOLDER, sources
from vit_demo.web.frontend.components import Inputs, Stage, stylesheet, view_names
from vit_demo.web.frontend.modules import version
from vit_demo.web.requests.packing import pack, unpack
from vit_demo.web.requests.payload import data_url

from ..asynchronous import run


async def echo(request: object) -> bytes:
    return pack({"result": request})


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
    if digit == 7:  # by its centre of mass
        rows, columns = (np.repeat(np.average(np.arange(280), weights=ink.sum(axis)), 2) for axis in (1, 0))
    assert abs(rows.min() + rows.max() - 279) < 30 and abs(columns.min() + columns.max() - 279) < 40


def test_an_example_is_the_same_picture_as_a_data_url() -> None:
    url = data_url(example_picture(3))
    with Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,")))) as picture:
        assert np.array_equal(np.asarray(picture), np.asarray(example_picture(3)))


def make_inputs(**options: Any) -> Inputs:
    return Inputs(on_request=echo, digits_preset="digits-tiny", **options)


@pytest.mark.parametrize("component", [lambda: Stage(on_request=echo), make_inputs])
def test_the_browser_gets_the_name_of_the_components_function_and_python_the_request(component: Any) -> None:
    config = component().get_config()
    assert config["server_fns"] == ["request"] and "request" not in config
    reply = run(component().request({"kind": "logit_lens"}))
    assert unpack(reply.body) == {"result": {"kind": "logit_lens"}} and reply.headers["content-encoding"] == "gzip"


def test_configs_are_json() -> None:
    for component in (Stage(on_request=echo), Stage({"empty": True}, on_request=echo), make_inputs()):
        json.dumps(component.get_config())


def constants_of(component: HTML) -> dict[str, Any]:
    """What the component's script gives its module."""
    return json.loads(component.get_config()["js_on_load"].splitlines()[0].removeprefix("const constants = ")[:-1])


@pytest.mark.parametrize("name", ["inputs", "stage"])
def test_each_component_imports_its_own_main_module(name: str) -> None:
    component = {"inputs": make_inputs, "stage": lambda: Stage(on_request=echo)}[name]()
    load = component.get_config()["js_on_load"]
    assert f"/{version()}/page.js" in load and f'modules["{name}/main.js"].mount(' in load
    assert re.search(r"export (async )?function mount\(", sources()[f"{name}/main.js"])


def test_what_a_component_needs_to_start_is_in_its_script_which_no_update_changes() -> None:
    for component in (Stage(on_request=echo), make_inputs()):
        assert component.get_config()["props"] == {}
    constants = constants_of(make_inputs(opening_digit=4))
    assert constants["digits"] == DIGITS
    assert constants["defaults"] == {"digits": "digits-tiny", "photos": "photos-tiny", "digit": 4}


def test_the_inputs_hold_every_part_of_their_html() -> None:
    html = make_inputs().get_config()["html_template"]
    for name in ("pad", "photo", "fit", "model-view", "preset", "patch-size", "model", "tabs"):
        assert html.count(f'id="{name}"') == 1
    assert "<!--" not in html


def test_the_stage_shows_every_registered_method_and_every_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "new_method", replace(METHODS["relevance"], name="new_method"))
    constants = constants_of(Stage(on_request=echo))
    assert [method["name"] for method in constants["registered"]] == list(METHODS)
    assert [method["class_specific"] for method in constants["registered"]] == [
        m.class_specific for m in METHODS.values()
    ]
    folders = [path.name for path in (FOLDER / "stage" / "views").iterdir() if any(path.glob("*.js"))]
    assert constants["viewNames"] == view_names() == sorted(folders)
    assert len(constants["stepCode"]) == 8 and constants["startingPoints"]["networks"]


def test_every_style_sheet_is_part_of_the_stage() -> None:
    for path in (FOLDER / "stage").rglob("*.css"):
        assert assets.read_styles(str(path.relative_to(FOLDER))) in stylesheet()


@pytest.mark.parametrize("path", [*FOLDER.rglob("*/*.html"), *FOLDER.rglob("*/*.css")], ids=lambda path: path.name)
def test_templates_hold_nothing_that_gradio_would_evaluate(path: Path) -> None:
    assert not re.search(r"\$\{|\{\{|`|\\|@children", path.read_text(encoding="utf-8"))


def test_style_sheets_lose_comments_and_indentation_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(assets, "FOLDER", tmp_path)
    (tmp_path / "a.css").write_text("/* One\n   two. */\na { b: c; /* stays */ }\n@media (x) {\n  a { b: d; }\n}\n")
    (tmp_path / "b.css").write_text("  /* gone */\n.b { content: '/* not one */'; }")
    shortened = "a { b: c; /* stays */ }\n@media (x) {\na { b: d; }\n}\n\n.b { content: '/* not one */'; }"
    assert assets.read_styles("a.css", "b.css") == shortened
