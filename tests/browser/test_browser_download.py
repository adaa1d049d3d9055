"""The card "Download": every file holds the map that the package computes, and the copied code runs."""

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .choosing import Page, choose_method, close_settings, load_steps, method_button, open_anew, rub


@pytest.fixture(scope="module")
def page(lasting_window: Callable[..., Page]) -> Page:
    """One that all tests of this file share."""
    return lasting_window()


@pytest.fixture
def relevance(page: Page, address: str) -> Iterator[Page]:
    """The page with the evidence for a class, chosen by a link."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_anew(page, f"{address}#tab=digits&model=digits-tiny&patch_size=7&digit=3&method=relevance")
    page.wait_for_function(
        "document.querySelector('.stage')?.__stage?.scene()?.map"
        " && document.querySelector('.stage')?.__stage?.choices.method === 'relevance'"
    )
    load_steps(page)
    yield page


def expected() -> vit_demo.Exploration:
    return vit_demo.explore(example_picture(3), "digits-tiny", patch_size=7)


def saved(page: Page, name: str, into: Path | None = None) -> bytes:
    page.locator(".download summary").click()
    with page.expect_download() as download:
        page.locator(".files button", has=page.get_by_text(name, exact=True)).click()
    if into is not None:
        download.value.save_as(into / download.value.suggested_filename)
    return download.value.path().read_bytes()


def copied(page: Page, name: str) -> str:
    page.evaluate("navigator.clipboard.writeText('')")
    page.get_by_role("button", name=name, exact=True).click()
    return page.wait_for_function("navigator.clipboard.readText()").json_value()


def test_the_files_hold_the_packages_values(relevance: Page) -> None:
    result = expected()
    values = json.loads(saved(relevance, "JSON"))
    np.testing.assert_array_equal(np.float32(values["map"]), result.relevance())
    assert values["precision"] == "float32" and "head -1 is the mean of all heads" in values["counting"]
    assert (values["preset"], values["patch_size"], values["method"]) == ("digits-tiny", 7, "relevance")
    assert values["label"] == result.top(1)[0][0] and values["class_specific"] is True
    assert values["picture"] == "drawing-3" and values["unit"]
    np.testing.assert_allclose(
        [one["probability"] for one in values["predictions"]], sorted(result.probabilities)[::-1]
    )
    choose_method(relevance, "Rollout")
    relevance.locator(".subject", has_text="rollout").wait_for()
    np.testing.assert_array_equal(np.float32(json.loads(saved(relevance, "JSON"))["map"]), result.rollout())
    assert np.array_equal(Image.open(io.BytesIO(saved(relevance, "Input picture"))), result.image)
    method_button(relevance, "Attention").check()
    relevance.get_by_role("radio", name="attended to by").check()
    close_settings(relevance)
    relevance.wait_for_function("document.querySelector('.stage').__stage.choices.direction === 'to'")
    incoming = np.float32(json.loads(saved(relevance, "JSON"))["map"])
    np.testing.assert_array_equal(incoming, result.attention(direction="to"))


def test_all_heads_and_the_curves_are_tables_and_one_figure(relevance: Page) -> None:
    rows = [line.split(",") for line in saved(relevance, "All heads, CSV").decode().splitlines()]
    maps = expected().attention_maps()
    assert rows[0] == ["block", "head", "row", "column", "attention"] and len(rows) == 1 + maps.size
    for block, head, row, column, value in rows[1::7]:
        assert float(value) == pytest.approx(
            maps[int(block) - 1, int(head) - 1, int(row) - 1, int(column) - 1], abs=1e-4
        )
    relevance.locator(".download summary").click()
    relevance.locator(".files button", has=relevance.get_by_text("Curves, CSV", exact=True)).click()
    relevance.locator(".download", has_text="Nothing was measured").wait_for()
    relevance.get_by_role("button", name="Test these colours").click()
    relevance.locator(".randomization", has_text="random weights").wait_for()
    curves = [line.split(",") for line in saved(relevance, "Curves, CSV").decode().splitlines()[1:]]
    found = [float(value) for _, test, order, _, value in curves if (test, order) == ("deletion", "map")]
    assert found == pytest.approx(expected().faithfulness("relevance").deletion.tolist(), abs=1e-4)
    figure = ElementTree.fromstring(saved(relevance, "One figure, SVG"))
    assert len(figure.findall(".//{*}image")) == 2 * maps.shape[0] * maps.shape[1]
    assert len(figure.findall(".//{*}polyline")) == 2 * (1 + len({order for _, _, order, _, _ in curves} - {"map"}))


def test_the_pictures_have_a_caption(relevance: Page) -> None:
    png = Image.open(io.BytesIO(saved(relevance, "PNG")))
    assert png.width == 896 and png.height > 896, "the caption is below the picture"
    assert np.asarray(png.convert("L"))[900:].min() < 80
    svg = ElementTree.fromstring(saved(relevance, "SVG"))
    texts = [text.text or "" for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    words = " ".join(texts)
    assert "Relevance" in words and "for 3" in words and "digits-tiny, patches of 7 × 7 pixels" in words
    peak = f"{expected().relevance().max():.2g}"
    assert svg.find(".//{*}linearGradient") is not None and {"0", peak} <= set(texts)
    bar = np.asarray(png.convert("RGB"))[896 + 20 + 6, 200:-200].astype(int)
    assert bar[0].sum() > bar[-1].sum() + 100, "the colour bar is dark where the map is strong"
    choose_method(relevance, "Libra FullGrad+")
    relevance.locator(".subject", has_text="Libra FullGrad+").wait_for()
    heading = ElementTree.fromstring(saved(relevance, "SVG")).find(".//{*}text[@font-weight='600']")
    assert heading is not None and heading.text == "What speaks for 3 · Libra FullGrad+", "no name twice"


COLOURS = """async (url) => {
  const image = Object.assign(new Image(), {src: url});
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), {width: 896, height: 896});
  canvas.getContext("2d").drawImage(image, 0, 0, 896, 896 * image.height / image.width);
  const { data } = canvas.getContext("2d").getImageData(0, 0, 896, 896);
  const sums = new Array(28 * 28 * 3).fill(0); // millions of numbers would take half a minute to be sent
  for (let i = 0; i < data.length; i += 4) {
    const square = 28 * Math.floor(i / 4 / 896 / 32) + Math.floor((i / 4) % 896 / 32);
    for (let colour = 0; colour < 3; colour++) sums[3 * square + colour] += data[i + colour];
  }
  return sums.map((sum) => sum / 32 / 32);
}"""
"""The mean colour of each square of 32 pixels."""


def test_a_saved_map_of_a_photo_has_the_colours_of_the_page(page: Page, address: str) -> None:
    open_anew(page, f"{address}#tab=photos&model=photos-tiny&photo=german-shepherd")
    png = np.asarray(Image.open(io.BytesIO(saved(page, "PNG"))).convert("RGB"))[:896].astype(float)
    svg = b64encode(saved(page, "SVG")).decode()
    drawn = np.reshape(page.evaluate(COLOURS, f"data:image/svg+xml;base64,{svg}"), (28, 28, 3))
    assert np.abs(drawn - png.reshape(28, 32, 28, 32, 3).mean((1, 3))).mean() < 2, (
        "a photo keeps a quarter of its colours below a map"
    )


def test_a_picture_that_changes_meanwhile_changes_no_file(relevance: Page) -> None:
    relevance.locator(".download summary").click()
    with relevance.expect_download() as download:
        relevance.evaluate(
            """() => {
              document.querySelector("[data-download=json]").click();
              document.querySelector("[data-action=clear]").click();
            }"""
        )
    assert download.value.suggested_filename == "drawing-3-relevance-3-digits-tiny-7.json"


def test_the_caption_has_the_faithfulness_once_it_was_measured(relevance: Page, tmp_path: Path) -> None:
    assert "deletion" not in saved(relevance, "SVG").decode()
    assert "faithfulness" not in json.loads(saved(relevance, "JSON"))
    relevance.get_by_role("button", name="Test these colours").click()
    relevance.get_by_role("button", name="Tested").wait_for()
    background = "e => getComputedStyle(e).backgroundColor"
    assert relevance.locator(".test").evaluate(background) == "rgba(0, 0, 0, 0)", "what is finished is no main button"
    result = expected()
    found = result.faithfulness(result.relevance(), seeds=5)
    areas = [found.deletion_area, found.random_deletion_area, found.insertion_area, found.random_insertion_area]
    values = json.loads(saved(relevance, "JSON"))["faithfulness"]
    assert len(values) == 1 and (values[0]["removed"], values[0]["measure"]) == ("mean", "probability")
    sent = [values[0]["deletion"], values[0]["random"]["deletion"]]
    sent += [values[0]["insertion"], values[0]["random"]["insertion"]]
    np.testing.assert_allclose(sent, areas, atol=1e-5)
    words = "deletion {:.2f} (random order {:.2f}), insertion {:.2f} (random order {:.2f})".format(*areas)
    texts = [text.text or "" for text in ElementTree.fromstring(saved(relevance, "SVG")).findall(".//{*}text")]
    assert f"{words}; masked squares become: mean colour" in " ".join(texts)
    saved(relevance, "SVG", into=tmp_path)
    page = relevance.context.new_page()
    page.goto(next(tmp_path.glob("*.svg")).as_uri())
    ends = page.evaluate("[...document.querySelectorAll('text')].map((e) => e.getBBox().x + e.getBBox().width)")
    page.close()
    assert max(ends) <= 896, "no line is cut"
    assert Image.open(io.BytesIO(saved(relevance, "PNG"))).height == 896 + 40 + 6 * 30
    relevance.locator(".bars button").nth(1).click()
    relevance.wait_for_function("document.querySelector('.subject').innerText.startsWith('for ')")
    relevance.wait_for_function("document.querySelector('.stage').__stage.scene().view.label !== null")
    assert "deletion" not in saved(relevance, "SVG").decode(), "another class was not measured"


def test_the_copied_code_gives_the_same_map(relevance: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(relevance, "Input picture", into=tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    code = copied(relevance, "Copy as Python")
    assert '# "Save, share, code": "Input picture"' in code
    assert relevance.locator(".download h3").inner_text() == "Save, share, code"
    exec(code, names)
    np.testing.assert_allclose(names["values"], expected().relevance(), rtol=1e-5)
    assert (tmp_path / "relevance.png").exists()
    command = copied(relevance, "Copy the command").split()
    assert command[:3] == ["python", "-m", "vit_demo"] and main([*command[3:], "--out", "out"]) == 0
    assert list((tmp_path / "out").glob("*relevance*"))

    rub(relevance)  # squares that are rubbed out are left to the Python code
    relevance.locator(".picture").click(position={"x": 5, "y": 5})
    relevance.wait_for_function("document.querySelector('.stage').__stage.current().dropped.length === 1")
    relevance.get_by_role("button", name="Copy the command", exact=True).click()
    relevance.get_by_text("cannot rub out squares").wait_for()
    assert "ex = ex.drop_patches([(0, 0)])" in copied(relevance, "Copy as Python")


def test_the_copied_command_has_the_options_of_the_map(
    relevance: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    relevance.evaluate("location.hash = 'tab=digits&model=digits-tiny&patch_size=7&digit=3&block=2&head=1&patch=6'")
    relevance.wait_for_function("document.querySelector('.stage').__stage.scene().view.query === 5")
    code = copied(relevance, "Copy as Python")
    assert "block=1, head=0, query=(1, 1))  # counted from 0\n" in code
    saved(relevance, "PNG", into=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [
        "drawing-3-attention-block2-head1-row2-col2-digits-tiny-7.png"
    ]
    saved(relevance, "Input picture", into=tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code, names)
    command = copied(relevance, "Copy the command")
    assert command.endswith("--method attention --block 1 --head 0 --query 1,1")
    assert main([*command.split()[3:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["maps"]["attention"]["values"]
    np.testing.assert_allclose(found, names["values"], atol=1e-5)


def test_the_input_of_a_photo_is_saved_as_the_model_saw_it(
    page: Page, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_anew(page, f"{address}#tab=photos&model=photos-tiny&patch_size=12&photo=lion&method=relevance")
    page.wait_for_function(  # the opening digit may come first
        "document.querySelector('.stage')?.__stage?.current()?.source.example === 'lion'"
        " && document.querySelector('.stage').__stage.scene()?.map"
    )
    page.wait_for_selector('.stage[data-state="done"]')
    saved(page, "Input picture", into=tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == "lion-input-photos-tiny-12.png" and Image.open(path).size == (120, 120)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(copied(page, "Copy as Python"), names)
    wanted = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, "photos-tiny", patch_size=12)
    np.testing.assert_allclose(names["values"], wanted.relevance(), rtol=1e-4, atol=1e-6)
