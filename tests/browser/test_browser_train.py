"""Training in Build, as a visitor sees it: from a click to the attention of one's own network, its link, its code."""

import contextlib
import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights.kept_networks import trained_network

from .choosing import Locator, Page, open_page, open_section

HEIGHT = 110
"""Of a chart, as in ``findings.js``."""


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that thirty seconds take one."""
    from vit_demo.training import small
    from vit_demo.web.requests import training

    monkeypatch.setattr(small, "NUM_CHECKS", 3)
    real = training.train_small

    def shorter(*given, **choices):
        return real(*given, **choices | {"steps": 12})

    monkeypatch.setattr(training, "train_small", shorter)


def change(page: Page) -> Locator:
    """The form, which is unfolded."""
    open_section(page, "Build")
    if not page.locator(".build .fields").is_visible():
        page.get_by_text("Change the network").click()
    return page.locator(".build .fields")


def train(page: Page) -> None:
    open_section(page, "Build")
    box = page.locator(".train")
    box.get_by_role("button", name="Train it").click()
    box.get_by_role("button", name="Look into it").wait_for()


def test_from_a_click_to_the_attention_of_ones_own_network(page: Page, address: str, tmp_path: Path) -> None:
    opened = open_page(page, f"{address}#digit=7")
    train(opened)
    box = opened.locator(".train")
    assert box.locator(".mistakes img").count() == 8 and "Done: 12 steps" in box.locator(".note").inner_text()
    with opened.expect_download() as download:
        box.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "mine.zip")
    with zipfile.ZipFile(tmp_path / "mine.zip") as archive:
        archive.extractall(tmp_path)
    ex = vit_demo.explore(example_picture(7), tmp_path / "vit_demo-digits")
    shown = float(box.locator("[data-train=accuracy]").inner_text().split()[0]) / 100
    label = ex.top(1)[0][0]
    assert box.locator(".digit figcaption").inner_text().startswith(f"It says {label}, ")

    box.get_by_role("button", name="Look into it").click()
    opened.wait_for_function("document.querySelector('.stage').__stage.current()?.source.preset.startsWith('yours-')")
    name = opened.evaluate("document.querySelector('.stage').__stage.current().source.preset")
    kept = trained_network(name)
    assert kept.accuracy == pytest.approx(shown, abs=0.0006)
    assert opened.locator("#preset option:checked").inner_text() == f"Yours ({100 * kept.accuracy:.0f} %)"
    found = opened.evaluate("[...document.querySelector('.stage').__stage.map({method: 'attention'})]")
    np.testing.assert_allclose(np.reshape(found, (4, 4)), ex.attention(), atol=2e-3)

    link = opened.url
    assert f"model={name}" in link
    again = opened.context.new_page()
    again.goto(link)
    again.wait_for_function(
        "name => document.querySelector('.stage')?.__stage?.current()?.source.preset === name", arg=name
    )
    again.close()


def test_the_copied_program_trains_the_same_network(opened: Page) -> None:
    opened.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    train(opened)
    opened.locator(".train").get_by_role("button", name="Copy as Python").click()
    code = opened.wait_for_function("window.copied").json_value()
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    opened.locator(".train").get_by_role("button", name="Look into it").click()
    opened.wait_for_function("document.querySelector('.stage').__stage.current()?.source.preset.startsWith('yours-')")
    name = opened.evaluate("document.querySelector('.stage').__stage.current().source.preset")
    kept = trained_network(name)
    assert all(torch.equal(a, b) for a, b in zip(kept.model.parameters(), names["model"].parameters(), strict=True))
    assert out.getvalue().strip() == str((12, kept.accuracy))


def test_a_run_is_cancelled_and_a_network_that_is_not_for_digits_is_not_trained(opened: Page, monkeypatch) -> None:
    from vit_demo.training.small import train_small
    from vit_demo.web.requests import training

    monkeypatch.setattr(training, "train_small", train_small)
    fields = change(opened)
    box = opened.locator(".train")
    fields.get_by_label("Time").select_option("60")
    assert box.locator(".note").inner_text() == "It takes up to 60 seconds."
    box.get_by_role("button", name="Train it").click()
    opened.wait_for_function("document.querySelector('[data-train=loss]').innerText > '0'")
    box.get_by_role("button", name="Cancel").click()
    box.get_by_text("Cancelled.").wait_for()
    assert box.get_by_role("button", name="Look into it").is_hidden()
    fields.get_by_label("Start from").select_option(label="ViT-Tiny")
    box.get_by_text("Only networks for digits can be trained here").wait_for()
    assert box.get_by_role("button", name="Train it").is_disabled()


def test_a_second_run_is_drawn_over_the_one_before(opened: Page) -> None:
    train(opened)
    charts = opened.locator(".train .measure")
    first = charts.locator("svg .curve").evaluate_all("all => all.map((one) => one.getAttribute('d'))")
    assert charts.locator(".other").count() == 0
    change(opened).locator("[name=pos_embed]").select_option(label="none")
    train(opened)
    assert charts.locator(".key .other").all_inner_texts() == ["the run before, pos_embed=learned"] * 2
    second = charts.locator("svg .other").evaluate_all("all => all.map((one) => one.getAttribute('d'))")
    assert len(first) == len([*filter(None, first)]) == 2
    heights = [[HEIGHT - float(y) for y in re.findall(r" ([\d.]+)", path)] for path in (first[0], second[0])]
    shares = [[height / of_run[0] for height in of_run] for of_run in heights]  # the axis may end elsewhere
    assert shares[0] == pytest.approx(shares[1], rel=0.02), "the accuracy of the run before"
    assert charts.locator("path.curve").first.get_attribute("d") != first[0]


def test_a_network_that_is_too_large_is_named_before_one_clicks(opened: Page) -> None:
    fields = change(opened)
    box = opened.locator(".train")
    most = "1,000,000 parameters, 25,000,000 operations, 200 tokens and 16 blocks"
    can = "It takes up to 30 seconds."
    cannot = f"Too large to be trained here: at most {most}."
    for name, value, is_allowed in (
        ("depth", 17, False),
        ("depth", 16, True),
        ("patch_size", 1, False),
        ("patch_size", 7, True),
    ):
        fields.locator(f"[name={name}]").fill(str(value))
        box.locator(".note", has_text=can if is_allowed else cannot).wait_for()
        assert box.get_by_role("button", name="Train it").is_enabled() == is_allowed


def test_a_digit_that_it_gets_wrong_is_looked_into_beside_the_network_before_training(opened: Page) -> None:
    train(opened)
    mistake = opened.locator(".train .mistake").nth(2)
    _, predicted = mistake.inner_text().split(" taken for ")
    mistake.click()
    opened.wait_for_function("location.hash.includes('digit=test-')")
    opened.wait_for_function(
        "label => document.querySelector('.stage').__stage.current()?.predictions[0].label === label", arg=predicted
    )
    assert opened.locator(".predictions .first .label").inner_text() == predicted
    assert opened.evaluate("scrollY") == 0, "the picture is in sight"
    assert opened.locator("#pad .photo").evaluate("one => getComputedStyle(one).filter") == "invert(1)", "ink on paper"
    titles = opened.locator("#preset option").all_inner_texts()
    assert any(title.startswith("Yours before training (") for title in titles)
    number = re.search(r"digit=(test-\d+)", opened.url)
    assert number
    again = opened.context.new_page()
    again.goto(opened.url)
    again.wait_for_function(
        "label => document.querySelector('.stage')?.__stage?.current()?.predictions[0].label === label", arg=predicted
    )
    assert number[0] in again.url
    again.close()


def test_a_link_to_a_network_that_is_gone_offers_to_train_it_again(opened: Page) -> None:
    from vit_demo.weights import kept_networks

    fields = change(opened)
    fields.locator("[name=pos_embed]").select_option(label="none")
    fields.locator("[name=num_digits]").select_option(label="1,000")
    train(opened)
    opened.locator(".train").get_by_role("button", name="Look into it").click()
    opened.wait_for_function("document.querySelector('.stage').__stage.current()?.source.preset.startsWith('yours-')")
    link, name = opened.url, opened.evaluate("document.querySelector('.stage').__stage.current().source.preset")
    assert "training=12,0,1000,0.002" in link and "pos_embed:none" in link
    first = kept_networks.trained_network(name).model
    for name in list(kept_networks.networks._kept):
        kept_networks.networks._drop(name)
    again = opened.context.new_page()
    again.goto(link)
    box = again.locator(".train")
    box.get_by_text("This one was trained in 12 steps with seed 0").wait_for()
    box.get_by_role("button", name="Train it again").click()
    box.get_by_role("button", name="Look into it").click()
    again.wait_for_function("document.querySelector('.stage').__stage.current()?.source.preset.startsWith('yours-')")
    name = again.evaluate("document.querySelector('.stage').__stage.current().source.preset")
    second = kept_networks.trained_network(name).model
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    again.close()


BOXES = """
() => [...document.querySelectorAll('.train :is(.begin, .note, .digit, .measure, .measure svg, .mistakes, h3, .after)')]
  .concat(document.querySelector('.build .change'))
  .map((part) => [part.classList[0] ?? part.localName, ...Object.values(part.getBoundingClientRect().toJSON())])
  .map(([name, ...box]) => `${name.replace(/primary|quiet/, 'begin')} ${box.map(Math.round)}`)
"""


@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
def test_training_is_in_the_first_screen_and_moves_nothing(page: Page, phone: Page, address: str, size) -> None:
    window = phone if size[0] < 600 else page
    window.set_viewport_size({"width": size[0], "height": size[1]})
    open_page(window, f"{address}#section=build&digit=8")
    window.wait_for_function("document.querySelector('.train .ink canvas')")
    primary = ".build .primary:visible"
    assert window.locator(primary).all_inner_texts() == ["Train it"]
    before = window.evaluate(BOXES)
    window.locator(primary).click()
    window.locator(".train .cancel").wait_for()
    during = window.evaluate(BOXES)
    window.get_by_role("button", name="Look into it").wait_for()
    window.locator(".mistake img").first.wait_for()
    assert before == during == window.evaluate(BOXES)
    assert window.locator(primary).all_inner_texts() == ["Look into it"]
    assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for part in (".look-into", ".note", ".digit", ".measure >> nth=1"):
        box = window.locator(f".train {part}").bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= size[1], part
