"""The live camera: answers follow it, a frame is held as the picture, and it ends when nobody looks.

The camera of these tests shows the example photos.
"""

import base64
import io
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import vit_demo
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .choosing import STAGE, Page, Route, open_page, open_section, shown_result, wait_until

CAMERA = """photos => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 480 });
  const images = Object.fromEntries(
    Object.entries(photos).map(([name, src]) => [name, Object.assign(new Image(), { src })]),
  );
  window.filmed = "lion";
  window.tracks = [];
  setInterval(() => canvas.getContext("2d").drawImage(images[window.filmed], 0, 0, 640, 480), 20);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    if (window.isRefused) throw new DOMException("denied", "NotAllowedError");
    window.wanted = wanted;
    const stream = canvas.captureStream();
    window.tracks.push(...stream.getTracks());
    return stream;
  };
}"""
IS_FILMED = ".stage.live"
IS_OFF = """() => window.tracks.length && window.tracks.every(({ readyState }) => readyState === "ended")
  && document.querySelector("#photo video").srcObject === null"""
ANSWERS = "label => document.querySelector('.stage.live')?.dataset.top1 === label"


def photo_of(name: str) -> Image.Image:
    return Image.open(EXAMPLE_PHOTOS[name].path).convert("RGB").resize((640, 480))


def answer_of(picture: Image.Image | bytes) -> tuple[str, float]:
    return vit_demo.explore(picture, "photos-tiny").top(1)[0]


LION, GOLDFISH = (answer_of(photo_of(name))[0] for name in ("lion", "goldfish"))


@pytest.fixture
def filmed(page: Page, address: str) -> Page:
    """The page with a picture of a cat, and a camera that looks at a lion."""
    open_page(page, f"{address}#tab=photos&photo=cat")
    return with_camera(page)


def with_camera(page: Page) -> Page:
    photos = {}
    for name in ("lion", "goldfish"):
        photo_of(name).save(file := io.BytesIO(), "PNG")
        photos[name] = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    page.evaluate(CAMERA, photos)
    return page


def film(page: Page) -> None:
    page.locator("[data-way=live]:visible").click()
    page.wait_for_selector(IS_FILMED)


def turn_to(page: Page, name: str) -> None:
    page.evaluate("name => { window.filmed = name; }", name)


def frame_of(request: dict[str, Any]) -> bytes:
    head, content = request["source"]["frame"].split(",")
    assert head == "data:image/jpeg;base64"
    return base64.b64decode(content)


def test_the_answers_follow_the_camera_and_nothing_is_kept_of_it(filmed: Page):
    requests: list[tuple[str, str]] = []
    filmed.on("request", lambda request: requests.append((request.url, request.post_data or "")))
    before = filmed.evaluate("[location.href, history.length]")
    film(filmed)
    assert filmed.evaluate("window.wanted.video.facingMode") == "environment"
    painted = "[...document.querySelectorAll('.picture, .cell canvas')].map((canvas) => canvas.toDataURL())"
    pictures = []
    for name, label in (("lion", LION), ("goldfish", GOLDFISH), ("lion", LION)):
        turn_to(filmed, name)
        filmed.wait_for_function(ANSWERS, arg=label)
        filmed.locator(".headline", has_text=f"It sees: {label}.").wait_for()
        filmed.locator(".bars .first", has_text=label).wait_for()
        filmed.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        pictures.append(filmed.evaluate(painted))
    assert len(pictures[0]) == 7 and not {*pictures[0], *pictures[2]} & set(pictures[1]), "map and blocks, too"
    assert filmed.evaluate("[location.href, history.length]") == before
    assert filmed.evaluate(f"{STAGE}.current().source.example") == "cat", "the picture is still what it was"
    assert LION not in filmed.locator(".spoken-answer").inner_text(), "a screen reader hears of no frame"
    live = [json.loads(body) for url, body in requests if url.endswith("/live")]
    assert len(live) > 2 and not [url for url, _ in requests if url.endswith("/photo")], "no frame is a file"
    sides = {Image.open(io.BytesIO(frame_of(request))).size for request in live}
    assert sides == {(341, 256)}


def test_hold_keeps_the_frame_that_is_seen(filmed: Page):
    """The camera has turned away, but the page has no answer about that yet."""
    sent: list[dict[str, Any]] = []
    answered: list[dict[str, Any]] = []

    def until_it_turns(route: Route) -> None:
        request = json.loads(route.request.post_data or "")
        sent.append(request)
        if filmed_name[0] == "lion":
            answered.append(request)
            route.continue_()

    filmed_name = ["lion"]
    filmed.route("**/vit_demo/live", until_it_turns)
    film(filmed)
    filmed.wait_for_function(ANSWERS, arg=LION)
    count = len(sent)  # before it turns: what is sent from then on has no answer, and nothing follows it
    filmed_name[0] = "goldfish"
    turn_to(filmed, "goldfish")
    wait_until(filmed, lambda: len(sent) > count)
    filmed.locator("[data-way=hold]:visible").click()
    filmed.wait_for_function(f"{STAGE}.current()?.source.upload")
    upload = Path(filmed.evaluate(f"{STAGE}.current().source.upload"))
    assert upload.read_bytes() in [frame_of(request) for request in answered]
    label, probability = answer_of(upload.read_bytes())
    assert label == LION == filmed.locator(".stage").get_attribute("data-top1")
    shown = filmed.evaluate(f"{STAGE}.current().predictions[0].probability")
    assert shown == pytest.approx(probability, abs=1e-5)
    assert shown_result(filmed).top(1)[0][1] == pytest.approx(probability, abs=1e-5)
    filmed.wait_for_function(IS_OFF)
    assert filmed.locator(IS_FILMED).count() == 0
    assert filmed.locator("img.preview").get_attribute("alt") == "Your photo"


def test_until_the_held_frame_has_its_result_it_stays_in_sight(filmed: Page):
    film(filmed)
    filmed.wait_for_function(ANSWERS, arg=LION)
    waiting: list[Route] = []
    filmed.route("**/vit_demo/photo", lambda route: waiting.append(route))
    filmed.locator("[data-way=hold]:visible").click()
    filmed.wait_for_function(IS_OFF)
    wait_until(filmed, lambda: waiting)
    assert filmed.locator(IS_FILMED).count() == 1 and LION in filmed.locator(".headline").inner_text()
    waiting[0].abort()
    filmed.locator(".message", has_text="could not be uploaded").wait_for()
    assert filmed.locator(IS_FILMED).count() == 0


def test_another_verb_holds_the_frame_and_works_on_it(filmed: Page):
    film(filmed)
    filmed.wait_for_function(ANSWERS, arg=LION)
    filmed.keyboard.press("r")
    filmed.wait_for_function(f"{STAGE}.current()?.source.upload")
    filmed.wait_for_function(IS_OFF)
    filmed.locator(".picture").click(position={"x": 20, "y": 20})
    filmed.wait_for_function(f"String({STAGE}.current().dropped) === '0'")


ENDS: dict[str, Callable[[Page], Any]] = {
    "Stop": lambda page: page.locator("[data-way=stop]:visible").click(),
    "Escape": lambda page: page.keyboard.press("Escape"),
    "a hidden page": lambda page: page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange')); delete document.hidden"
    ),
    "a camera that is pulled out": lambda page: page.evaluate(
        "window.tracks.forEach((track) => { track.stop(); track.dispatchEvent(new Event('ended')); })"
    ),
    "another photo": lambda page: page.get_by_role("button", name="Goldfish").click(),
    "another tab": lambda page: page.get_by_role("tab", name="Digit").click(),
    "another section": lambda page: open_section(page, "Compare"),
}


def test_the_camera_ends_when_nobody_looks(filmed: Page):
    for name, end in ENDS.items():
        if name != "Stop":
            open_section(filmed, "Explore")
            filmed.get_by_role("tab", name="Photo").click()
        film(filmed)
        before = filmed.evaluate(f"{STAGE}.current().source.example")
        end(filmed)
        filmed.wait_for_function(IS_OFF)
        filmed.wait_for_function("!document.querySelector('.stage.live')")
        assert filmed.locator("[data-way=hold]:visible").count() == 0, name
        if name not in ("another photo", "another tab"):
            assert filmed.evaluate(f"{STAGE}.current().source.example") == before, (
                f"{name}: the picture of before is back"
            )


def test_a_camera_that_is_refused_says_so_and_loses_nothing(filmed: Page):
    filmed.evaluate("window.isRefused = true")
    filmed.locator("[data-way=live]:visible").click()
    filmed.locator(".photo-ways .problem", has_text="The camera could not be used: allow it in the browser").wait_for()
    assert filmed.evaluate(f"{STAGE}.current().source.example") == "cat"
    assert filmed.locator(".picture").is_visible() and filmed.locator(IS_FILMED).count() == 0
    filmed.evaluate("window.isRefused = false")
    film(filmed)
    filmed.wait_for_function(ANSWERS, arg=LION)
    assert filmed.locator(".photo-ways .problem").inner_text() == ""


def test_a_server_that_is_busy_for_a_while_slows_the_camera_down_without_a_word(filmed: Page):
    busy = ["busy"] * 3

    def reply(route: Route) -> None:
        if not busy:
            return route.continue_()
        busy.pop()
        return route.fulfill(json={"error": "The server is busy: try again in a moment."})

    filmed.route("**/vit_demo/live", reply)
    film(filmed)
    filmed.wait_for_function(ANSWERS, arg=LION)
    assert not busy and filmed.locator(".result-status").is_hidden()
    assert filmed.locator(".photo-ways .problem").inner_text() == ""


def test_rows_change_place_at_most_twice_a_second(filmed: Page):
    """By the clock that the page itself has read, however late this machine is."""
    film(filmed)
    filmed.evaluate("""() => {
      window.changes = [];
      const [bars, now] = [document.querySelector(".bars"), performance.now.bind(performance)];
      performance.now = () => (window.read = now());
      bars.replaceChildren = (...rows) => {
        window.changes.push(window.read);
        Element.prototype.replaceChildren.apply(bars, rows);
      };
      setInterval(() => { window.filmed = window.filmed === "lion" ? "goldfish" : "lion"; }, 150);
    }""")
    filmed.wait_for_function("window.changes.length >= 4")
    times = filmed.evaluate("window.changes")
    assert min(after - before for before, after in pairwise(times)) >= 500


def test_without_a_photo_the_picture_invites_to_choose_or_film_one(filmed: Page):
    filmed.locator(".photo-ways [data-way=remove]").click()
    filmed.locator(".message", has_text="Press here to choose a photo").wait_for()
    film(filmed)
    filmed.wait_for_function(ANSWERS, arg=LION)
    assert filmed.locator(".picture").is_visible() and filmed.locator(".message").is_hidden()
    filmed.keyboard.press("Escape")
    filmed.locator(".message", has_text="Press here").wait_for()
    assert filmed.locator(".picture").is_hidden()
    with filmed.expect_file_chooser() as chooser:
        filmed.locator(".view").click()
    chooser.value.set_files(EXAMPLE_PHOTOS["goldfish"].path)
    filmed.wait_for_function(f"{STAGE}.current()?.source.upload")


def test_on_a_phone_the_buttons_lie_over_the_picture_and_the_drawer_makes_way(phone: Page, address: str):
    open_page(phone, f"{address}#tab=photos&photo=cat")
    with_camera(phone)
    phone.locator("[data-sheet=photos]").click()
    phone.locator("#photo [data-way=live]").click()
    phone.wait_for_selector(IS_FILMED)
    assert phone.locator("[data-sheet=photos]").get_attribute("aria-expanded") == "false"
    picture, hold = (phone.locator(name).bounding_box() for name in (".picture", ".photo-ways [data-way=hold]"))
    assert picture and hold and hold["height"] >= 44
    assert picture["y"] < hold["y"] and hold["y"] + hold["height"] <= picture["y"] + picture["height"]
    phone.locator(".photo-ways [data-way=hold]").click()
    phone.wait_for_function(f"{STAGE}.current()?.source.upload")


def test_beside_a_comparison_a_frame_is_held_without_being_asked_about(filmed: Page):
    open_section(filmed, "Compare")
    asked: list[str] = []
    filmed.on("request", lambda request: asked.append(request.url))
    filmed.locator("#photo [data-way=live]").click()
    filmed.locator("#photo [data-way=hold]").click()
    filmed.wait_for_function(f"{STAGE}.current()?.source.upload")
    assert not [url for url in asked if url.endswith("/live")]
