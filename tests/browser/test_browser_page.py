"""The whole page, as a visitor meets it: open, draw, hover, drop photos good and bad, change size and model."""

import json
from pathlib import Path

import pytest
from PIL import Image

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights import PRESETS

from ..images.bombs import GREY, png
from .acts import run_of
from .choosing import READY, Page, close_settings, draw, settings, wait_a_moment, wait_until


def wait_for_result(page: Page, run: str) -> str:
    """Waits for a result after ``run`` and returns its first label."""
    page.wait_for_function("run => { const d = document.querySelector('.stage').dataset;"
                           " return d.ready === 'true' && d.run !== run; }", arg=run)  # fmt: skip
    return page.locator(".stage").get_attribute("data-top1") or ""


def costs_of(page: Page) -> dict[str, str]:
    """What a pass costs, from the drawer."""
    costs = settings(page).locator(".costs")
    found = dict(zip(costs.locator("dt").all_inner_texts(), costs.locator("dd").all_inner_texts(), strict=True))
    close_settings(page)
    return found


def show_photos(page: Page) -> None:
    run = run_of(page)
    page.get_by_role("tab", name="Photo").click()
    wait_for_result(page, run)


def upload(page: Page, path: Path) -> None:
    """Replaces the photo by a file."""
    page.locator("#photo input[type=file]").first.set_input_files(path)


def test_it_opens_with_an_explained_example_and_makes_no_foreign_request(page: Page, address: str):
    requests, foreign, errors = [], [], []
    page.on("request", lambda r: None if r.url.startswith(("data:", "blob:")) else requests.append(r.url))
    page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else foreign.append(r.url))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.goto(address)
    page.wait_for_selector(READY)
    assert page.locator(".stage").get_attribute("data-top1") == "8"
    assert page.locator(".bars .first .label").inner_text() == "8"
    sizes = PRESETS["digits-small"].patch_sizes
    table = page.locator("#patch-sizes label").all_inner_texts()
    assert [column.split()[:2] for column in table] == [[str(size), str((28 // size) ** 2)] for size in sizes]
    costs = costs_of(page)
    assert (costs["Squares (patches)"], costs["Tokens"]) == ("4 × 4", "17")
    assert costs["Time"].endswith(f" on {page.locator('.badge [translate=no]').inner_text()}")
    run = run_of(page)
    wait_a_moment(page)
    assert run_of(page) == run, "what is on the page already is not computed again"
    wait_until(page, lambda: page.evaluate(FRAMES_ASKED) < 40)  # an idle page asks for none: 30 are the test's own
    assert not foreign and not errors
    assert len([url for url in requests if "/gradio_api/vit_demo/" in url and url.endswith(".js")]) == 1
    assert len(requests) <= 40, "Gradio's and ours"


def test_drawing_gets_a_prediction_and_the_first_stroke_counts(opened: Page):
    for digit in (3, 5):
        run = run_of(opened)
        opened.get_by_role("button", name="New digit").click()
        opened.wait_for_selector('.stage[data-ready="empty"]')
        draw(opened, digit)
        opened.wait_for_function("top => document.querySelector('.stage').dataset.top1 === top", arg=str(digit))
        assert run_of(opened) != run


FRAMES_ASKED = """async () => {
  let asked = 0;
  window.refusesFrame = () => void asked++;
  for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame);
  delete window.refusesFrame;
  return asked;
}"""

HAS_TRACE = "block => document.querySelector('.stage').__stage.current().traces.has(block)"


def test_what_is_shown_is_what_the_package_computes_of_any_patch_size_and_model(opened: Page):
    expected = vit_demo.explore(example_picture(7), "digits-small", patch_size=4)
    settings(opened)
    for view, wanted in (
        ({"block": 2, "head": 1, "query": 24, "direction": "from"}, expected.attention(2, 1, (3, 3))),
        ({"block": 4, "head": -1, "query": 10, "direction": "to"}, expected.attention(4, None, (1, 3), "to")),
        ({"block": 5, "head": -1, "query": None, "direction": "from"}, expected.attention()),
    ):
        if view["query"] is not None:
            opened.get_by_label("Block", exact=True).fill(str(view["block"] + 1))
            opened.wait_for_function(HAS_TRACE, arg=view["block"])
        found = opened.evaluate("v => Array.from(document.querySelector('.stage').__stage.map(v))", view)
        assert found == pytest.approx(wanted.ravel().tolist(), abs=3e-3)
    close_settings(opened)
    check_patch_sizes_and_presets(opened)


def check_patch_sizes_and_presets(opened: Page) -> None:
    for size, tokens, grid in (("14", "5", [2, 2]), ("2", "197", [14, 14])):
        run = run_of(opened)
        opened.locator("#patch-size").get_by_text(size, exact=True).click()
        assert wait_for_result(opened, run) == "7"
        assert costs_of(opened)["Tokens"] == tokens
        shown = opened.evaluate("(s => [s.rows, s.columns])(document.querySelector('.stage').__stage.current())")
        assert shown == grid
    run = run_of(opened)
    opened.get_by_label("Model", exact=True).select_option("Digits, the MNIST notebook")
    wait_for_result(opened, run)
    opened.locator(".mechanism", has_text="2 times").wait_for()
    assert opened.locator("#patch-size label").count() == 3
    assert opened.evaluate("document.querySelector('.stage').__stage.current().numBlocks") == 2


SENTENCES = {"notes.jpg": "cannot be read as a picture", "huge.png": "more than 100 million pixels"}


def test_photos_good_and_bad(opened: Page, tmp_path: Path):
    """A rotated, a transparent, a false and a huge one: the right picture or one sentence, and the next one works."""
    show_photos(opened)
    scene = Image.linear_gradient("L").resize((120, 80)).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6  # shown upright after a quarter turn
    scene.save(tmp_path / "turned.jpg", exif=exif)
    clear = Image.new("RGBA", (90, 90), (0, 0, 0, 0))
    clear.paste((200, 30, 30, 255), (20, 20, 60, 60))
    clear.save(tmp_path / "clear.png")
    (tmp_path / "notes.jpg").write_text("these are words")
    (tmp_path / "huge.png").write_bytes(png(10_008, 10_008, GREY, bits=1))

    for name in ("turned.jpg", "notes.jpg", "clear.png", "huge.png", "turned.jpg"):
        upload(opened, tmp_path / name)
        if name in ("notes.jpg", "huge.png"):
            opened.locator(".message", has_text=SENTENCES[name]).wait_for()
            assert opened.locator(".bars .first").count() == 0, "nothing of the photo before"
            continue
        expected = vit_demo.explore(tmp_path / name, "photos-tiny").top(1)[0][0]
        opened.wait_for_function("top => document.querySelector('.stage').dataset.top1 === top", arg=expected)
    run = run_of(opened)
    opened.locator("#fit").get_by_text("Whole").click()
    wait_for_result(opened, run)
    rows, cols = opened.evaluate("(s => [s.rows, s.columns])(document.querySelector('.stage').__stage.current())")
    assert rows > cols, "upright after its quarter turn"


def test_everything_a_person_uses_has_a_name_and_no_runs_are_remembered(opened: Page):
    show_photos(opened)
    nameless = opened.evaluate(
        """[...document.querySelectorAll('#columns :is(button, input, select, canvas[tabindex])')]
        .filter(e => e.checkVisibility({ visibilityProperty: true }) && e.type !== 'file')
        .filter(e => !e.closest('[aria-hidden=true]'))
        .filter(e => !(e.ariaLabel || e.innerText?.trim() || e.labels?.length || e.title || e.querySelector?.('img')))
        .map(e => e.outerHTML.slice(0, 120))"""
    )
    assert nameless == []
    stored = opened.evaluate("JSON.stringify({...localStorage})")
    assert "data:image" not in stored and len(json.loads(stored)) < 10


def test_the_accuracy_of_a_model_is_said_of_the_pictures_it_was_measured_on(page: Page, address: str) -> None:
    page.goto(f"{address}#tab=photos&photo=church")
    page.wait_for_function("document.querySelector('.stage')?.__stage?.current()?.source.example === 'church'")
    accuracies = page.locator("#patch-sizes label small:nth-of-type(2)")
    assert "82.9" in accuracies.nth(1).inner_text()
    assert "Right on 82.9\u00a0% of 357 everyday photos" in (page.locator(".about-model").text_content() or "")
    page.locator("#fit").get_by_text("Whole").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.source.fit === 'keep'")
    result = "document.querySelector('.stage').__stage.current()"
    rows, columns = page.evaluate(f"[{result}.rows, {result}.columns]")
    assert rows != columns and costs_of(page)["Tokens"] == str(rows * columns + 1)
    assert not any("82.9" in text for text in accuracies.all_inner_texts()), "measured on the centre"
