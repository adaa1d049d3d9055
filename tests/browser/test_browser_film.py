"""The film: it plays, pauses and steps, with the package's own numbers, on every screen, and leads to the steps."""

import base64
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from .acts import REWRITTEN
from .choosing import (
    STAGE,
    Locator,
    Page,
    Route,
    frames,
    open_anew,
    open_page,
    shown_result,
    wait_a_moment,
    wait_until,
)

DIGIT = "digit=3&model=digits-tiny&patch_size=7"
IN_SIGHT = """node => {
    const { top, bottom, height } = node.getBoundingClientRect();
    return height > 0 && top >= 0 && bottom <= innerHeight;
}"""
LINES = "node => { const range = new Range(); range.selectNodeContents(node); return range.getClientRects().length; }"
FITS = "node => node.offsetHeight <= node.parentNode.clientHeight"
NOW = f"(() => {{ const now = {STAGE}.film()?.now(); return now?.moment ? now : null; }})()"


@pytest.fixture(scope="module")
def page(lasting_window: Callable[..., Page]) -> Page:
    """One that all tests of this file share."""
    return lasting_window()


def is_film(route: Route) -> bool:
    return '"film"' in (route.request.post_data or "")


def begin(page: Page, address: str, link: str = DIGIT, *, motion: bool = False, keys: tuple[str, ...] = ()) -> None:
    """Opens a picture, and its film, whose keys are pressed before its numbers are there; one before ends with it."""
    page.emulate_media(reduced_motion="no-preference" if motion else "reduce")
    open_anew(page, f"{address}#{link}")
    held: list[Route] = []
    if keys:
        page.route("**/vit_demo/request", lambda route: (held.append if is_film(route) else Route.continue_)(route))
    page.locator(".tour").evaluate("button => { button.click(); button.click(); }")  # in a hurry
    if keys:
        page.locator(".stage.filming").wait_for(state="attached")
        wait_until(page, lambda: bool(held))
    for key in keys:
        page.keyboard.press(key)
    for route in held:
        route.continue_()
    page.wait_for_function(NOW)
    assert page.locator(".film-line").count() == 1


def moment(page: Page) -> dict[str, Any]:
    """Where the film is."""
    return page.evaluate(
        f"""(() => {{
            const {{ time, isPlaying, query, moment: {{ index, depth, beat }}, film }} = ({NOW});
            return {{ ...beat, time, isPlaying, query, index, depth, beats: film.beats.length, seconds: film.seconds }};
        }})()"""
    )


def go_to(page: Page, kind: str, block: int | None = None) -> None:
    """Stops at the end of a beat."""
    page.evaluate(
        """([kind, block]) => {
            const film = document.querySelector(".stage").__stage.film();
            const { beats } = film.now().film;
            const { start, seconds } = beats.find((each) => each.kind === kind && each.block === block);
            film.seek(start + 0.98 * seconds);
        }""",
        [kind, block],
    )
    page.wait_for_function(f"({NOW}).moment.beat.kind === '{kind}'")
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")


def test_it_plays_pauses_steps_and_ends(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.unroute_all()
    page.goto("about:blank")  # where there is room all settings stand beside the answer, until they are closed
    begin(page, address, motion=True)
    assert page.locator(".drawer").is_hidden(), "nothing narrows it"
    page.wait_for_function(f"({NOW}).isPlaying && ({NOW}).moment.index >= 1")
    assert page.evaluate("document.activeElement.closest('.film-line') !== null"), "no hidden button keeps the focus"
    page.keyboard.press(" ")
    page.wait_for_function(f"!({NOW}).isPlaying")
    paused = moment(page)
    wait_a_moment(page)
    assert moment(page)["time"] == paused["time"]
    for key, by in (("ArrowRight", 1), ("PageDown", 2), ("ArrowLeft", 1), ("PageUp", 0)):
        page.keyboard.press(key)
        page.wait_for_function(f"({NOW}).moment.index === {paused['index'] + by}")
        assert page.locator(".headline .now").inner_text() == moment(page)["words"].replace("*", "")
    page.locator(".film-line [aria-label=Play]").click()
    page.wait_for_function(f"({NOW}).time > {moment(page)['time']} && ({NOW}).isPlaying")
    page.keyboard.press("End")
    page.wait_for_function(f"({NOW}).moment.beat.kind === 'end'")
    assert page.locator(".headline .now").inner_text().startswith("It says")
    page.keyboard.press("Escape")
    page.locator(".stage:not(.filming)").wait_for(state="attached")
    assert page.locator(".film-line").is_hidden() and page.locator("canvas.film").first.is_hidden()
    assert page.evaluate("document.activeElement.matches('.tour')")
    assert page.locator(".drawer").is_visible(), "as it was"
    page.set_viewport_size({"width": 1440, "height": 900})
    assert (
        page.locator(".picture").is_visible() and page.locator(".verbs [aria-pressed=true]").inner_text()[:4] == "Draw"
    )


def test_what_is_pressed_before_its_numbers_are_there_is_done_then(page: Page, address: str) -> None:
    begin(page, address, motion=True, keys=("Home", "ArrowRight", "End", "ArrowLeft", " "))
    page.wait_for_function(f"({NOW}).moment.beat.kind === 'read' && !({NOW}).isPlaying")


def test_what_is_pressed_before_its_code_is_there_is_done_then(page: Page, address: str) -> None:
    page.emulate_media(reduced_motion="no-preference")
    open_anew(page, f"{address}#{DIGIT}")
    held: list[Route] = []
    for keys, then in (
        (("End", "ArrowLeft", " "), f"({NOW})?.moment.beat.kind === 'read' && !({NOW}).isPlaying"),
        ((" ", "Escape"), f"!{STAGE}.film() && document.activeElement.matches('.tour')"),
    ):
        held.clear()
        page.route("**/film.js", lambda route: held.append(route))
        page.reload()
        page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
        page.locator(".tour").click()
        wait_until(page, lambda: bool(held))
        for key in keys:
            page.keyboard.press(key)
        held[0].continue_()
        page.wait_for_selector(".film-line", state="attached")
        page.wait_for_function(then)
        page.unroute("**/film.js")
    assert page.evaluate("scrollY") == 0, "the page has not got them"


def test_with_reduced_motion_it_is_a_row_of_steps(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1366, "height": 768})
    begin(page, address)
    spoken = []
    tops = set()
    for index in range(moment(page)["beats"]):
        page.wait_for_function(f"({NOW}).moment.index === {index}")
        wait_until(page, lambda: page.locator(".film-spoken").inner_text() == moment(page)["spoken"])
        spoken.append(page.locator(".film-spoken").inner_text())
        assert not moment(page)["isPlaying"]
        assert page.locator(".film-acts .switch").is_visible() == (index >= 2), "once the class token is known"
        boxes = [page.locator(each).bounding_box() for each in (".view", ".film-line", ".blocks", ".film-note")]
        assert all(box and box["y"] + box["height"] <= 768 - 12 for box in boxes), "nothing touches the lower edge"
        tops.add(tuple(box["y"] for box in boxes[:3] if box))
        assert page.locator(".headline").evaluate(FITS), "its words are whole"
        page.locator(".film-line").get_by_role("button", name="Step on").click()
    assert len(set(spoken)) == len(spoken), "each says something else"
    assert sum("looks at row" in words for words in spoken) == sum("Most from row" in words for words in spoken) == 6
    stopped = moment(page)
    wait_a_moment(page)
    assert moment(page)["time"] == stopped["time"] == stopped["seconds"]
    assert len(tops) == 1, "nothing jumps"
    page.set_viewport_size({"width": 1440, "height": 900})


def test_its_numbers_are_those_of_the_package(page: Page, address: str) -> None:
    for link in (DIGIT, "tab=photos&model=photos-tiny"):
        begin(page, address, link)
        check_numbers(page)


def check_numbers(page: Page) -> None:
    result = shown_result(page)
    depths = [dict(ranking) for ranking in result.logit_lens()]
    for query in (None, 5):
        if query is not None:
            go_to(page, "join")
            page.locator(".film-acts .switch button").last.click()
            page.wait_for_function(f"({NOW}).query !== null")
            query = moment(page)["query"]
        numbers = page.evaluate(
            f"""(() => {{
                const {{ attention, tokens, components }} = ({NOW}).numbers;
                return {{ attention: [...attention], tokens: [...tokens], components }};
            }})()"""
        )
        tokens = result.trace.num_tokens
        shares = np.array(numbers["attention"]).reshape(-1, tokens)
        sent = np.array(numbers["tokens"]).reshape(-1, tokens, len(numbers["components"]))
        for block in range(result.trace.num_blocks):
            place = None if query is None else divmod(query, result.grid[1])
            np.testing.assert_allclose(shares[block, 1:], result.attention(block, query=place).ravel(), atol=1e-5)
            expected = result.tokens(block, norm=False, prefix=True)[:, numbers["components"]]
            np.testing.assert_allclose(sent[block + 1], expected, atol=1e-3)
    for block in range(result.trace.num_blocks):
        go_to(page, "collect", block)
        rows = page.locator(".bars li")
        for i in range(rows.count()):
            name, number = rows.nth(i).locator(".label").inner_text(), rows.nth(i).locator(".number").inner_text()
            probability = depths[block + 1][name]
            written = f"{100 * probability:.1f}\u00a0%"
            assert number == (written if 0.001 <= probability < 0.9995 else number) and number[0] in "<>0123456789"
        leading = max(depths[block + 1], key=depths[block + 1].__getitem__)
        assert page.locator(".bars .first .label").inner_text() == leading
        assert f"So far the answer would be {leading}," in page.locator(".headline").inner_text()


@pytest.mark.parametrize("size", [(390, 844), (390, 664)])
def test_a_phone_is_not_widened_and_nothing_is_cut_off(
    window: Callable[..., Page], address: str, size: tuple[int, int]
) -> None:
    phone = window(size, "phone")
    for link in (DIGIT, "digit=8&patch_size=2", "tab=photos&model=photos-tiny"):
        begin(phone, address, link)
        places = set()
        for _ in range(moment(phone)["beats"]):
            assert phone.evaluate("document.documentElement.scrollWidth") == 390
            view, line, acts = (phone.locator(each).bounding_box() for each in (".view", ".film-line", ".film-acts"))
            assert view and line and acts
            assert view["y"] >= 0 and acts["y"] >= line["y"] + line["height"]
            assert acts["y"] + acts["height"] <= size[1] - 60, "above the bar at the foot"
            places.add((view["y"], line["y"], acts["y"]))
            assert phone.locator(".headline").evaluate(FITS), "its words are whole"
            step = phone.locator(".more-of-step")
            if step.is_visible():
                assert step.evaluate("node => node.scrollWidth <= node.clientWidth"), "its words are whole"
                assert step.get_attribute("aria-label").startswith(step.inner_text().removesuffix(" ›") + ": ")
            phone.locator(".film.faces").press("ArrowDown")
            card = phone.locator(".film-card").bounding_box()
            if card:
                assert card["x"] >= 0 and card["x"] + card["width"] <= 390 and card["y"] >= 0
                assert card["y"] + card["height"] <= view["y"], "what is touched is in sight"
                assert phone.locator(".film-acts .more-of-step").evaluate(IN_SIGHT)
            phone.keyboard.press("ArrowRight")
        assert len(places) == 1, "nothing jumps"
        wait_until(phone, lambda: phone.evaluate(REWRITTEN) == [])
        go_to(phone, "end")
        for way in (".keep", ".keep + .link"):
            phone.locator(way).wait_for()
            assert phone.locator(way).evaluate(IN_SIGHT), "what to do next"


@pytest.mark.parametrize("language", ["en", "de", "fr", "es"])
def test_at_its_end_what_can_be_pressed_beside_it_has_one_line(page: Page, address: str, language: str) -> None:
    begin(page, f"{address}?language={language}")
    for size in ((1280, 720), (1366, 768), (1920, 1080)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        go_to(page, "end")
        for way in page.locator(".film-acts button:visible").all():
            assert way.evaluate(LINES) == 1 and way.evaluate("e => e.scrollWidth <= e.clientWidth"), way.inner_text()
        assert page.locator(".film-note .link").first.evaluate(IN_SIGHT), "and below the answers is what to do next"
    page.set_viewport_size({"width": 1440, "height": 900})


def test_at_the_start_the_answers_glide_from_where_they_are(window: Callable[..., Page], address: str) -> None:
    page = window()
    page.emulate_media(reduced_motion="no-preference")
    open_page(page, f"{address}#{DIGIT}")
    page.evaluate(
        """() => {
            const { animate } = Element.prototype;
            Element.prototype.animate = function (...given) {
                const made = animate.apply(this, given);
                if (this.matches(".predictions")) (window.glide = made).pause();
                return made;
            };
        }"""
    )
    before, picture = (page.locator(each).bounding_box() for each in (".predictions", ".picture"))
    page.locator(".tour").click()
    page.wait_for_function(NOW)
    page.evaluate("window.glide.currentTime = 0")
    after = page.locator(".predictions").bounding_box()
    assert before and picture and after
    assert [round(after[side]) for side in ("x", "y", "width")] == [round(before[side]) for side in ("x", "y", "width")]
    view = page.locator(".view").bounding_box()
    assert view and [round(view[side]) for side in ("x", "y", "height")] == [
        round(picture[side]) for side in ("x", "y", "height")
    ]


SCROLLS = """() => {
    window.paces = [];
    const { scrollIntoView } = Element.prototype;
    Element.prototype.scrollIntoView = function (how) {
        window.paces.push(how?.behavior ?? "auto");
        scrollIntoView.call(this, how);
    };
}"""


def click_at(page: Page, share_x: float, share_y: float) -> None:
    box = page.locator(".view").bounding_box()
    assert box
    page.mouse.click(box["x"] + share_x * box["width"], box["y"] + share_y * box["height"])


def check_card(page: Page, card: Locator) -> None:
    """By keys or by a touch a thread of the third block is explained where it is."""
    for key in ("ArrowDown", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.locator(".film.faces").press(key)
    card.wait_for()
    frames(page)  # the last key's is shown
    at, box, own = page.evaluate(f"({NOW}).card.at"), page.locator(".view").bounding_box(), card.bounding_box()
    assert box and own and own["y"] >= box["y"] and own["y"] + own["height"] <= box["y"] + box["height"]
    words = card.locator("p").inner_text()
    assert words.startswith("Block 3: class token looks at ") and words.endswith(" of its attention.")
    wait_until(page, lambda: page.locator(".film-spoken").inner_text() == words)
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")
    assert box
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    card.get_by_text("of its attention.").wait_for()
    assert page.evaluate("scrollY") == 0, "it is explained where it is"
    wait_until(page, lambda: page.evaluate(REWRITTEN) == [])


def test_a_touch_explains_what_it_is_and_leads_to_its_step(page: Page, address: str) -> None:
    begin(page, address, f"{DIGIT}&patch=5")
    assert moment(page)["query"] is None, "it begins from what gives the answer, whichever square is chosen"
    go_to(page, "collect", 2)
    click_at(page, 0.02, 0.02)
    page.wait_for_function(f"({NOW}).query === 0")
    assert page.locator(".film-acts .switch [aria-pressed=true]").inner_text() == "From row 1, column 1"
    page.locator(".film-acts .switch button").first.click()
    page.wait_for_function(f"({NOW}).query === null")
    go_to(page, "collect", 2)
    card = page.locator(".film-card")
    check_card(page, card)
    page.evaluate(SCROLLS)
    page.locator(".film.faces").press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "More in step 4 ›"
    page.keyboard.press("Enter")
    page.locator(".steps .count", has_text="Step 4 of 8").wait_for()
    assert set(page.evaluate("window.paces")) == {"auto"}, "without movement at once"
    chosen = page.evaluate(f"{STAGE}.choices.tour")
    assert chosen["fromClassToken"] and chosen["block"] == 2
    waiting = moment(page)
    assert not waiting["isPlaying"] and (waiting["kind"], waiting["block"]) == ("collect", 2)
    back = page.get_by_role("button", name="Back to the film")
    assert back.evaluate("node => node === document.activeElement"), "the focus went to the step"
    back.press("Enter")
    page.wait_for_function("scrollY === 0 && document.activeElement.closest('.film-line')")
    assert page.locator("canvas.film").first.is_visible() and moment(page)["time"] == waiting["time"]
    page.keyboard.press("ArrowRight")
    card.wait_for(state="hidden")
    page.locator(".film-acts .switch button").last.click()
    page.wait_for_function(f"({NOW}).query === 4")
    go_to(page, "end")
    assert "You followed the one in row 2, column 1." in page.locator(".headline").inner_text()
    page.locator(".film-acts .switch button").first.click()
    page.wait_for_function(f"({NOW}).query === null")
    go_to(page, "end")
    click_at(page, 0.965, 0.15)
    card.get_by_text("row 4, column 4 as 64 numbers.").wait_for()
    card.get_by_role("button").click()
    page.locator(".steps .count", has_text="Step 2 of 8").wait_for()
    assert page.evaluate(f"{STAGE}.choices.tour.patch") == 15

    # With movement the page glides there, until the way back is in sight.
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Back to the film").click()
    page.wait_for_function("scrollY === 0")
    page.evaluate("window.paces = []")
    card.get_by_role("button").click()
    page.wait_for_function(f"({IN_SIGHT})(document.querySelector('.film-back'))")
    assert set(page.evaluate("window.paces")) == {"smooth"}
    page.emulate_media(reduced_motion="reduce")


def test_a_block_or_the_line_leads_to_a_moment(page: Page, address: str) -> None:
    begin(page, address)
    page.locator(".cell[data-block='3']").click()
    page.wait_for_function(f"({NOW}).moment.beat.block === 3 && ({NOW}).moment.depth === 4")
    assert page.locator(".cell[data-block='3']").get_attribute("aria-pressed") == "true"
    page.locator(".film-line input").fill("1")
    page.wait_for_function(f"({NOW}).moment.beat.kind === 'cut'")
    page.locator("[data-mode=rub]").evaluate("button => button.click()")
    page.locator(".stage:not(.filming)").wait_for(state="attached")
    page.locator("[data-mode=rub][aria-pressed=true]").wait_for()


def test_the_last_picture_can_be_kept(page: Page, address: str) -> None:
    begin(page, address)
    assert page.locator(".keep").is_hidden()
    go_to(page, "end")
    assert page.locator(".keep").inner_text() == "Save this picture"
    with page.expect_download() as download:
        page.locator(".keep").click()
    assert page.locator(".keep").inner_text() == "Picture saved."
    assert download.value.suggested_filename == "vit_demo-film-3.png"
    url = download.value.url
    with Image.open(BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        pixels = np.asarray(picture.convert("RGB"), np.int16)
    assert pixels.shape[1] > 1500
    is_coloured = np.ptp(pixels, axis=2) > 40
    assert is_coloured[len(pixels) // 2 :].mean() > 0.02, "there are threads"


def test_a_new_picture_ends_it_and_without_its_code_there_are_the_steps(page: Page, address: str) -> None:
    begin(page, address)
    page.locator(".digits button", has_text="5").click()
    page.locator(".stage:not(.filming)[data-top1='5']").wait_for(state="attached")
    assert page.evaluate(f"{STAGE}.film()") is None
    page.route("**/film.js", lambda route: route.abort())
    page.reload()
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    page.locator(".tour").click()
    page.locator(".steps .count", has_text="Step").wait_for()
