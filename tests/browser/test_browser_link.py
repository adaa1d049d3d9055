"""The address holds the state of the page: links, Back and Forward, reload, and what each tab remembers."""

import html
import re
from collections.abc import Callable

import vit_demo
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .choosing import READY, STAGE, Page, Request, Route, choose_method, draw, frames, open_page, rub, wait_until

LION = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, "photos-tiny").top(1)[0][0]


def shown(page: Page) -> dict:
    """What the page shows, once its newest result is there."""
    page.wait_for_selector('.stage[data-state="done"]')
    frames(page)
    return page.evaluate(
        f"""() => {{
            const result = {STAGE}.current();
            const {{ section, method, block, head, direction, pinned, label }} = {STAGE}.choices;
            const text = (selector) => document.querySelector(selector)?.innerText;
            return {{
                tab: document.querySelector("[role=tab][aria-selected=true]").id,
                model: document.querySelector("#preset").value,
                size: document.querySelector("#patch-size :checked").value,
                fit: document.querySelector("#fit :checked").value,
                view: {{ section, method, block, head, direction, pinned, label }},
                predictions: result?.predictions,
                grid: [result?.rows, result?.columns],
                subject: text(".subject"),
                photo: result?.source.example ?? null,
            }};
        }}"""
    )


def draw_and_wait(page: Page, digit: int) -> None:
    draw(page, digit)
    page.wait_for_selector(f'.stage[data-top1="{digit}"][data-state="done"]')


def test_a_link_shows_the_same_drawing_to_the_digit_in_another_browser(opened: Page, window: Callable[..., Page]):
    draw_and_wait(opened, 3)
    opened.locator("#patch-size").get_by_text("7", exact=True).click()
    opened.wait_for_function(f"{STAGE}.current().rows === 4")
    choose_method(opened, "Rollout")
    opened.locator(".bars button").nth(1).click()
    opened.wait_for_function("document.querySelector('.subject').innerText.startsWith('What speaks for ')")
    first = shown(opened)
    assert len(opened.url) < 2200
    assert shown(open_page(window(kind="other visitor"), opened.url)) == first


def test_a_picture_of_a_report_opens_by_its_link_with_its_map(page: Page, address: str, tmp_path):
    vit_demo.audit("photos-tiny", [EXAMPLE_PHOTOS["lion"].path], patch_size=15).to_html(tmp_path)
    link = re.search(r'href="http://127.0.0.1:7860/(#[^"]+)"', (tmp_path / "pictures" / "0.html").read_text("utf-8"))
    open_page(page, address + html.unescape(link[1]))
    page.wait_for_selector(f'.stage[data-top1="{LION}"]')
    found = shown(page)
    assert found["photo"] is None and (found["tab"], found["size"]) == ("tab-photos", "15"), "it is no example"
    assert found["view"]["method"] == "libra_fullgrad"
    assert vit_demo.presets()["photos-tiny"].labels[found["view"]["label"]] == LION
    assert "image=" not in page.url


def test_a_link_to_a_photo_shows_a_copy_of_it_until_its_answer_is_there(page: Page, address: str):
    held = []

    def is_result(request: Request) -> bool:
        return '"kind":"result"' in (request.post_data or "")

    def hold_first(route: Route) -> None:
        if held or not is_result(route.request):
            route.continue_()
        else:
            held.append(route)

    page.route("**/request", hold_first)
    with page.expect_request(is_result):
        page.goto(f"{address}#tab=photos&photo=church")
    page.wait_for_selector('.stage[data-ready="loading"]')
    picture = "getComputedStyle(document.querySelector('.view')).backgroundImage"
    assert "church.webp" in page.evaluate(picture)
    assert page.locator(".headline").inner_text() == page.locator(".bars").inner_text().strip() == "", "not the 8"
    held[0].continue_()
    page.wait_for_selector(READY)
    assert page.evaluate(picture) == "none"


def test_a_link_holds_the_photo_the_fit_and_the_view(page: Page, address: str):
    link = "tab=photos&model=photos-tiny&patch_size=15&fit=keep&photo=church&block=3&head=2&direction=to&patch=2"
    open_page(page, f"{address}#{link}")
    # Until the queries and keys of the block have come, the class token stays the query.
    page.wait_for_function("document.querySelector('.subject').innerText.includes('the square')")
    found = shown(page)
    assert (found["tab"], found["model"], found["size"], found["fit"]) == ("tab-photos", "photos-tiny", "15", "keep")
    assert found["photo"] == "church" and found["grid"][0] != found["grid"][1]
    view = {"block": 2, "head": 1, "direction": "to", "pinned": 1, "method": "attention"}
    assert view.items() <= found["view"].items()
    assert found["subject"].startswith("To the square in row 1, column 2 · block 3 of 6, head 2")


def test_back_forward_and_reload(opened: Page):
    steps = [shown(opened)]

    def step(action, **becomes) -> None:
        """Does what leads to a result or a map of its own."""
        action()
        wait_until(opened, lambda: becomes.items() <= (shown(opened)["view"] | shown(opened)).items())
        steps.append(shown(opened))

    step(lambda: opened.locator("#patch-size").get_by_text("7", exact=True).click(), grid=[4, 4])
    step(lambda: choose_method(opened, "Rollout"), method="rollout")
    step(lambda: opened.get_by_role("tab", name="Photo").click(), photo="lion")
    step(lambda: opened.get_by_role("button", name="Goldfish").click(), photo="goldfish")
    for expected in steps[-2::-1]:
        opened.go_back()
        wait_until(opened, lambda expected=expected: shown(opened) == expected)
    for expected in steps[1:]:
        opened.go_forward()
        wait_until(opened, lambda expected=expected: shown(opened) == expected)
    opened.reload()
    opened.wait_for_selector(READY)
    opened.wait_for_function(f"{STAGE}?.current()?.source.example === 'goldfish'")
    assert shown(opened) == steps[-1]
    opened.get_by_role("tab", name="Digit").click()
    opened.wait_for_function(f"{STAGE}.current().pixelated")
    assert shown(opened)["size"] == "7", "a reload keeps the other tab, too"


def test_each_tab_remembers_its_picture_model_and_size_and_the_last_line_is_ours(opened: Page, address: str):
    draw_and_wait(opened, 3)
    opened.get_by_label("Model", exact=True).select_option("digits-tiny")
    opened.locator("#patch-size").get_by_text("7", exact=True).click()
    opened.get_by_role("tab", name="Photo").click()
    opened.get_by_role("button", name="Goldfish").click()
    opened.locator("#patch-size").get_by_text("20", exact=True).click()
    photos = shown(opened)
    assert photos["size"] == "20" and photos["photo"] == "goldfish"
    opened.keyboard.press("Shift+Tab")
    tab = opened.get_by_role("tab", name="Photo")
    tab.focus()
    tab.press("ArrowLeft")
    opened.wait_for_function(f"{STAGE}.current().pixelated")
    digits = shown(opened)
    assert (digits["model"], digits["size"], digits["predictions"][0]["label"]) == ("digits-tiny", "7", "3")
    opened.get_by_role("tab", name="Digit").press("End")
    opened.wait_for_function(f"!{STAGE}.current().pixelated")
    assert shown(opened) == photos

    # The last line names API, source and licence, and no menu of Gradio is left.
    assert opened.locator("footer").count() == 1, "Gradio's own is off"
    assert opened.get_by_role("button", name="Settings", exact=True).count() == 0
    links = opened.locator("footer a")
    assert {link.get_attribute("target") for link in links.all()} == {"_blank"}, "the page and its address stay"
    assert opened.request.get(f"{address}{links.first.get_attribute('href').removeprefix('./')}").ok
    assert "MIT" in opened.locator("footer").inner_text()


def test_copy_link_says_what_is_not_in_it(page: Page, address: str):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, address)
    page.get_by_role("button", name="Example 5").click()
    page.wait_for_selector('.stage[data-top1="5"]')
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Link copied.", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"{address}#patch_size=7&digit=5"
    page.get_by_role("tab", name="Photo").click()
    page.locator("#photo input[type=file]").first.set_input_files(EXAMPLE_PHOTOS["lion"].path)
    page.wait_for_function(f"{STAGE}.current()?.source.upload")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("without your photo").wait_for()
    assert "upload" not in page.evaluate("navigator.clipboard.readText()") and "vit_demo-" not in page.url


def test_dropped_patches_are_in_the_link_and_come_back(opened: Page, window: Callable[..., Page]):
    rub(opened)
    picture = opened.locator("#stage .picture")
    for x in (20, 120):
        picture.click(position={"x": x, "y": 20})
    opened.wait_for_function(f"{STAGE}.current().dropped.length === 2")
    opened.wait_for_function("location.hash.includes('removed=1-2')")  # the address follows a moment later
    dropped = opened.evaluate(f"{STAGE}.current().dropped")
    other = open_page(window(kind="other visitor"), opened.url)
    other.wait_for_function(f"{STAGE}.current().dropped.length === 2")
    assert other.evaluate(f"{STAGE}.current().dropped") == dropped
    assert shown(other)["predictions"] == shown(opened)["predictions"]
    rub(other)
    other.locator(".back").click()
    other.wait_for_function(f"{STAGE}.current().dropped.length === 0 && !location.hash.includes('removed=')")
