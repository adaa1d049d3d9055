"""Teaching in Build, as a visitor sees it: drawings and photos in boxes, bars at once, the map, and the link."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.service.engine import get_engine
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.catalog.method_docs import lesson
from vit_demo.web.requests.parse import ResultRequest
from vit_demo.weights import PRESETS
from vit_demo.weights.kept_networks import trained_preset

from .choosing import STAGE, on_paper, open_page, open_section, press_along, wait_a_moment, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

SHORTCUT = lesson(13)
TURNS = (0.0, 0.15, -0.15)
ACCURACY = "Tested on each picture after learning from all others: {0} of {0} are right; guessing would get {1}."

DROP = """(box, contents) => {
  const data = new DataTransfer();
  for (const [i, content] of contents.entries()) {
    const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
    data.items.add(new File([bytes], `photo${i}.jpg`, { type: "image/jpeg" }));
  }
  const options = { bubbles: true, cancelable: true, dataTransfer: data };
  for (const name of ["dragenter", "dragover", "drop"]) box.dispatchEvent(new DragEvent(name, options));
}"""


def points(kind: str, turn: float) -> list[tuple[float, float]]:
    """The corners of a star or a box on the paper, in shares of its side."""
    count, step = (5, 4 * math.pi / 5) if kind == "star" else (4, math.pi / 2)
    return [(0.5 + 0.36 * math.sin(k * step + turn), 0.5 - 0.36 * math.cos(k * step + turn)) for k in range(count + 1)]


def draw(page: Page, kind: str, turn: float, surface: str = "#pad .paper") -> None:
    """Draws on what is on the paper: an example, or what was added, which gives way."""
    press_along(page, on_paper(page, points(kind, turn), surface), steps=4)
    page.mouse.up()


def boxes(page: Page):
    return page.locator("[data-teach=class]")


def add(page: Page, index: int) -> None:
    """Adds what is on the stage to a class."""
    pictures = boxes(page).nth(index).locator(".pictures button")
    count = pictures.count()
    boxes(page).nth(index).locator("[data-teach=add]").click()
    pictures.nth(count).wait_for()


def name(page: Page, index: int, text: str) -> None:
    box = boxes(page).nth(index).get_by_label("Name of the class")
    box.fill(text)
    box.press("Tab")


def teach_star_and_box(page: Page) -> None:
    name(page, 0, "star")
    name(page, 1, "box")
    for turn in TURNS:
        for index, kind in enumerate(("star", "box")):
            draw(page, kind, turn)
            add(page, index)
    page.locator("[data-teach=accuracy]").get_by_text(ACCURACY.format(6, 3)).wait_for()


def predictions(page: Page) -> dict[str, float]:
    found = page.evaluate(f"{STAGE}.current().predictions.map(({{label, probability}}) => [label, probability])")
    return dict(found)


def shown_map(page: Page) -> np.ndarray:
    """The map of what speaks for the predicted class, once it is there."""
    page.locator("[data-show=class]").click()
    page.wait_for_function(f"{STAGE}.scene()?.method.label.startsWith('Libra') && {STAGE}.scene().map")
    return np.array(page.evaluate(f"Array.from({STAGE}.scene().map)"))


def test_two_symbols_are_taught_looked_into_and_sent_by_a_link(page: Page, address: str) -> None:
    open_page(page, f"{address}#digit=7&patch_size=4")
    open_section(page, "Build")
    page.locator(".build").get_by_role("button", name="Teach your own classes").click()
    teach_star_and_box(page)
    draw(page, "star", 0.3)
    number = "document.querySelector('.teach .first:first-child .number')"
    page.wait_for_function(f"parseFloat({number}?.textContent) > 80")
    drawn = base64.urlsafe_b64decode(page.url.split("strokes=")[1].split("&")[0] + "==")
    assert len(drawn) == 2 + 3 * (256 * (drawn[0] & 15) + drawn[1]), "one stroke: each began anew after what was added"
    page.get_by_role("button", name="Look into it").click()
    page.locator(".predictions .first .label", has_text="star").wait_for()
    assert page.locator("#preset option:checked").inner_text() == "star, box"

    shown = predictions(page)
    preset = trained_preset(page.evaluate(f"{STAGE}.current().source.preset"))
    assert preset.labels == ("star", "box") and sum(shown.values()) == pytest.approx(1)
    found = shown_map(page)
    request = ResultRequest.parse(page.evaluate(f"{STAGE}.current().source"))
    ex = get_engine().explore_source(request.source, preset, 4, request.fit)
    np.testing.assert_allclose(found, ex.heatmap("libra_fullgrad", "star").ravel(), atol=1e-3)

    other = open_page(page.context.new_page(), page.url)
    other.wait_for_function(f"{STAGE}.current()?.source.preset.startsWith('taught-')")
    assert predictions(other) == pytest.approx(shown, abs=1e-3)
    assert other.evaluate(f"{STAGE}.current().source.preset") == preset.name


def test_an_example_that_is_named_is_not_among_those_of_the_other_class(page: Page, address: str) -> None:
    open_page(page, f"{address}#digit=8&patch_size=7")
    page.locator(".ask .small").click()
    page.wait_for_function("document.activeElement.dataset.teach === 'name'")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    # A class that it knows: first it shows why not that one.
    page.locator(".headline", has_text="Why not 3? It has ").wait_for()
    page.wait_for_function(f"{STAGE}.scene().method.classSpecific && {STAGE}.scene().map")
    request = ResultRequest.parse(page.evaluate(f"{STAGE}.current().source"))
    ex = get_engine().explore_source(request.source, PRESETS["digits-small"], 7, request.fit)
    found = page.evaluate(f"Array.from({STAGE}.scene().map)")
    np.testing.assert_allclose(found, ex.heatmap("libra_fullgrad", "3", against="8").ravel(), atol=1e-3)
    page.emulate_media(reduced_motion="no-preference")
    page.evaluate("""() => {
      const plain = document.startViewTransition.bind(document);
      document.startViewTransition = (act) => {
        const glide = plain(act);
        glide.ready.then(() => { window.moved = document.getAnimations().map(({ effect }) => effect.pseudoElement); });
      };
    }""")
    page.locator(".teach-it").click()
    page.wait_for_function(
        "window.moved?.includes('::view-transition-group(picture)')"
    )  # to the paper beside the classes
    page.locator("[data-teach=accuracy]", has_text="2 more “3”, please").wait_for()
    assert [boxes(page).nth(i).locator(".pictures img").count() for i in range(2)] == [1, 8]


def test_what_it_calls_a_digit_is_named_below_the_answer_taught_tricked_and_asked_for_by_a_link(
    page: Page, address: str
) -> None:
    """A box is read as a 0: its name, two more of it, a line below all digits as a shortcut, and a link."""
    open_page(page, f"{address}#digit=7&patch_size=7")
    page.locator(".again").click()
    draw(page, "box", 0.785, ".picture")
    page.locator(".ask .small").click()
    field = page.locator("[data-teach=name]")
    page.locator(".ask li").nth(9).wait_for()  # what it knows is offered first
    field.fill("  house ")
    field.press("Enter")
    page.locator(".ask p", has_text="The model does not know “house”. From one picture it learns little.").wait_for()
    assert page.locator(".teach").is_hidden(), "nothing is taught unasked"
    page.wait_for_function("document.activeElement.textContent === 'Teach it in Build'")
    page.keyboard.press("Enter")
    note = page.locator("[data-teach=accuracy]")
    note.get_by_text("2 more “house”, please").wait_for()
    names = [boxes(page).nth(i).get_by_label("Name of the class").input_value() for i in range(2)]
    assert names == ["house", "a digit"]
    assert [boxes(page).nth(i).locator(".pictures img").count() for i in range(2)] == [1, 10]
    assert page.locator(".trick").is_hidden()
    for turn in (0.7, 0.85):
        draw(page, "box", turn)
        add(page, 0)
    note.get_by_text("of 13 are right").wait_for()
    digits = boxes(page).nth(1).locator(".pictures img")
    before = digits.first.get_attribute("src")
    page.get_by_role("button", name="Now trick it").click()
    note.get_by_text("has a line below it now").wait_for()
    assert digits.count() == 10 and digits.first.get_attribute("src") != before
    page.locator(".lesson .task", has_text=SHORTCUT["task"]).wait_for()
    page.get_by_role("button", name="Take the lines away").click()
    note.get_by_text("of 13 are right").wait_for()
    assert digits.first.get_attribute("src") == before
    assert page.locator(".lesson").is_hidden()

    page.get_by_role("button", name="Look into it").click()
    page.wait_for_function(f"{STAGE}.current()?.source.preset === document.querySelector('#preset').value")
    assert "draw me" not in page.locator(".headline").inner_text(), "who has drawn it is not asked to"
    address_of_it = page.url
    page.get_by_role("button", name="Back to Digits, small").click()
    page.wait_for_function(f"{STAGE}.current()?.source.preset === 'digits-small'")
    assert page.locator("#choices .offer").is_hidden()
    other = open_page(page.context.new_page(), address_of_it)
    other.locator(".headline", has_text="Now you: draw me “house”.").wait_for()
    assert sorted(predictions(other)) == ["a digit", "house"]


def test_a_photo_is_named_below_the_answer_beside_the_examples(page: Page, address: str, tmp_path: Path) -> None:
    open_page(page, f"{address}#tab=photos&photo=tiger")
    assert page.locator(".ask .small").is_hidden(), "it is unsure, so the question is there"
    page.locator("[data-teach=name]").fill("tabby")
    wait_until(page, lambda: page.locator(".ask li").count() == 1)  # the list follows what is typed
    assert page.get_by_role("button", name="Teach it in Build").is_visible(), "which is the name of no class itself"
    page.locator(".ask li button").click()
    page.locator(".headline", has_text="tabby cat comes first: 12.8").wait_for()
    assert page.locator(".ask .panel").is_hidden()
    page.locator("[data-teach=name]").fill("tiger")
    page.get_by_role("button", name="Teach it in Build").click()
    page.locator("[data-teach=accuracy]").get_by_text("2 more “tiger”, please: choose a photo").wait_for()
    counts = [boxes(page).nth(i).locator(".pictures img").count() for i in range(2)]
    assert counts == [1, len(EXAMPLE_PHOTOS) - 1], "all but the tiger itself"
    page.wait_for_function("[...document.querySelectorAll('.teach img')].every((each) => each.naturalWidth)")
    assert page.locator(".trick").is_hidden()
    for i in range(2):
        Image.effect_noise((60, 60), 40 + i).save(tmp_path / f"{i}.png")
    boxes(page).nth(0).locator("input[type=file]").set_input_files([tmp_path / "0.png", tmp_path / "1.png"])
    page.get_by_role("button", name="Now trick a network: this takes drawings").click()
    page.locator(".lesson .task", has_text=SHORTCUT["task"]).wait_for()
    assert "shortcut" in SHORTCUT["task"] and "lesson=13" in SHORTCUT["link"]
    boxes(page).nth(0).get_by_text("Add this drawing").wait_for()


def test_where_teaching_cannot_be_loaded_it_says_so(page: Page, address: str) -> None:
    page.route("**/teach.js", lambda route: route.abort())
    open_page(page, f"{address}#digit=7&section=teach")
    page.locator("[data-teach=accuracy]").get_by_text("could not be loaded: reload the page").wait_for()


def test_what_the_server_refuses_changes_nothing(page: Page, address: str) -> None:
    open_page(page, f"{address}#section=teach&patch_size=4")
    note = page.locator("[data-teach=accuracy]")
    teach_star_and_box(page)
    boxes(page).nth(1).locator("[data-teach=add]").click()  # the same drawing again
    note.get_by_text("Two examples of “box” are the same").wait_for()
    name(page, 1, "star")
    note.get_by_text("Two classes are called “star”").wait_for()
    name(page, 1, " ")
    note.get_by_text("must be one line").wait_for()
    assert boxes(page).nth(1).get_by_label("Name of the class").input_value() == "box"
    page.locator("#pad [data-action=clear]").click()
    page.wait_for_selector(".stage[data-ready=empty]", state="attached")
    boxes(page).nth(0).locator("[data-teach=add]").click()
    note.get_by_text("Draw something, or choose a photo").wait_for()
    assert page.locator(".teach .pictures img").count() == 6
    name(page, 1, "<b>box</b>")
    note.get_by_text(ACCURACY.format(6, 3)).wait_for()
    assert page.locator("#preset option:checked").inner_text() == "star, <b>box</b>"
    boxes(page).nth(0).locator(".pictures button").first.click()
    note.get_by_text(ACCURACY.format(5, 2)).wait_for()


def test_photos_are_taught_from_files(page: Page, address: str) -> None:
    open_page(page, f"{address}#tab=photos&photo=lion&section=teach")
    classes = {"cats": ["cat", "tiger"], "places": ["church", "mountains"]}
    for index, (label, examples) in enumerate(classes.items()):
        name(page, index, label)
        files = [str(EXAMPLE_PHOTOS[example].path) for example in examples]
        boxes(page).nth(index).locator("input[type=file]").set_input_files(files[:1])
        boxes(page).nth(index).locator(".pictures button").first.wait_for()
    page.locator("[data-teach=accuracy]").get_by_text("The bars say").wait_for()
    for index, examples in enumerate(classes.values()):
        boxes(page).nth(index).locator("input[type=file]").set_input_files(str(EXAMPLE_PHOTOS[examples[1]].path))
    page.locator("[data-teach=accuracy]").get_by_text("of 4 are right").wait_for()
    page.get_by_role("button", name="Look into it").click()
    # The answer of the network before this one is "cats", too.
    page.wait_for_function(f"{STAGE}.current()?.source.preset === document.querySelector('#preset').value")
    page.locator(".predictions .first .label", has_text="cats").wait_for()
    preset = trained_preset(page.evaluate(f"{STAGE}.current().source.preset"))
    ex = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, preset.name)
    assert dict(ex.top(2)) == pytest.approx(predictions(page), abs=1e-3)
    taught = vit_demo.teach({k: [EXAMPLE_PHOTOS[one].path for one in v] for k, v in classes.items()}, "photos-tiny")
    assert vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, taught).probabilities == pytest.approx(
        ex.probabilities, abs=0.01
    ), "as in Python, but for the half precision of a link and the encoding of an upload"
    np.testing.assert_allclose(shown_map(page), ex.heatmap("libra_fullgrad", "cats").ravel(), atol=1e-3)


def test_several_files_are_dropped_on_a_class_which_is_named_meanwhile(page: Page, address: str) -> None:
    open_page(page, f"{address}#tab=photos&photo=koala&section=teach")
    box, examples = boxes(page).nth(1), ("goldfish", "tiger", "cat")
    contents = [base64.b64encode(EXAMPLE_PHOTOS[example].path.read_bytes()).decode() for example in examples]
    box.evaluate(DROP, contents)
    name(page, 1, "animals")
    page.wait_for_function("document.querySelectorAll('.teach .pictures img').length === 3")
    page.locator("[data-teach=accuracy]").get_by_text("Now add a picture to another class.").wait_for()
    assert box.locator(".pictures img").count() == 3 and box.get_by_label("Name of").input_value() == "animals"
    assert page.evaluate(f"{STAGE}.current().source.example") == "koala", "the photo of the page stays"
    assert page.locator(".veil").is_hidden()


@pytest.mark.parametrize("way", ["drop", "choose"])
def test_files_that_are_refused_stay_named_while_others_follow(page: Page, address: str, way: str) -> None:
    open_page(page, f"{address}#tab=photos&photo=koala&section=teach")
    cat, tiger, church = (EXAMPLE_PHOTOS[name].path.read_bytes() for name in ("cat", "tiger", "church"))

    def give(index: int, *contents: bytes) -> None:
        if way == "drop":
            boxes(page).nth(index).evaluate(DROP, [base64.b64encode(content).decode() for content in contents])
        else:
            files = [{"name": f"photo{i}.jpg", "mimeType": "image/jpeg", "buffer": c} for i, c in enumerate(contents)]
            boxes(page).nth(index).locator("input[type=file]").set_input_files(files)

    def refused(count: int) -> list[str]:
        page.wait_for_function(f"document.querySelectorAll('[data-teach=refused] li').length === {count}")
        return page.locator("[data-teach=refused] li").all_inner_texts()

    give(0, cat, b"no picture", b"", cat, cat[:2000], tiger)
    page.wait_for_function("document.querySelectorAll('.teach .pictures img').length === 2")
    said = refused(4)
    assert [line.split(": ")[0] for line in said] == [f"photo{number}.jpg" for number in (1, 2, 3, 4)]
    assert said[2] == "photo3.jpg: This is the same picture as photo0.jpg: choose another one."
    assert all(len(line.split(": ", 1)[1]) > 20 and "undefined" not in line for line in said)
    give(1, church, tiger)
    assert refused(1) == ["photo1.jpg: This is the same picture as photo5.jpg: choose another one."]
    page.locator("[data-teach=accuracy]").get_by_text("The bars say").wait_for()
    assert page.locator(".teach .pictures img").count() == 3


def test_the_webcam_films_for_as_long_as_its_button_is_held(page: Page, address: str) -> None:
    open_page(page, f"{address}#tab=photos&photo=koala&section=teach")
    box = boxes(page).nth(0)
    box.locator(".film").hover()
    page.mouse.down()
    box.locator("video").wait_for()
    box.locator(".pictures img").nth(1).wait_for()
    held = box.locator(".pictures img").count()
    page.mouse.up()
    box.locator("video").wait_for(state="hidden")
    assert page.evaluate("!document.querySelector('.teach video').srcObject")
    for _ in range(5):
        wait_a_moment(page)
    count = box.locator(".pictures img").count()
    assert count <= held + 2, "no more than it was held, and what is on its way"
    box.locator(".film").focus()
    page.keyboard.down("Space")
    box.locator(".pictures img").nth(count).wait_for()
    page.keyboard.up("Space")
    box.locator("video").wait_for(state="hidden")


def test_on_a_phone_the_pad_stays_open_below_the_classes(phone: Page, address: str) -> None:
    open_page(phone, f"{address}#section=teach&digit=3")
    phone.locator("button[data-sheet=digits]").tap()
    for index, example in enumerate("38"):
        phone.get_by_role("button", name=f"Example {example}").tap()
        phone.wait_for_selector(f'.stage[data-top1="{example}"][data-state="done"]')
        add_button = boxes(phone).nth(index).locator("[data-teach=add]").bounding_box()
        sheet = phone.locator("#inputs").bounding_box()
        assert add_button and sheet and add_button["y"] + add_button["height"] <= sheet["y"], "in sight"
        add(phone, index)
    assert phone.locator("#pad .paper").is_visible()
    phone.locator("[data-teach=accuracy]").get_by_text("The bars say").wait_for()


def test_build_leads_from_one_way_to_the_other(page: Page, address: str) -> None:
    open_page(page, address)
    open_section(page, "Build")
    page.locator(".build").get_by_role("button", name="Teach your own classes").click()
    page.locator(".teach h2").wait_for()
    assert page.locator("#header [data-section=build]").get_attribute("aria-current") == "true"
    assert page.locator("#pad .paper").is_visible() and boxes(page).count() == 2
    page.locator(".teach").get_by_role("button", name="Train a network").click()
    page.locator(".build h2").first.wait_for()
