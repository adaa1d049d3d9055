"""The section Step by step, as a visitor walks through it: keyboard, clicks and questions, against the package."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture

from .choosing import Locator, Page, Route, open_anew, open_steps, wait_until

TITLES = [
    "Cut the picture into patches",
    "Turn each patch into a token",
    "Say where each patch belongs",
    "Attention: what a token attends to",
    "Put the heads together",
    "Work on each token by itself",
    "Repeat, block by block",
    "Read the answer",
]


@pytest.fixture(scope="module")
def page(lasting_window: Callable[..., Page]) -> Page:
    """One that all tests of this file share."""
    return lasting_window()


def open_tour(page: Page, address: str, link: str = "digit=7&patch_size=4") -> list[str]:
    """Opens the chapter and returns the list into which errors of the console go."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    open_anew(page, f"{address}#{link}")
    open_steps(page)
    figure(page).locator(".tiles").wait_for()
    return errors


def figure(page: Page) -> Locator:
    return page.locator(".steps .figure")


def wait_for_step(page: Page, step: int) -> None:
    page.wait_for_function("t => document.querySelector('.steps .title').innerText === t", arg=TITLES[step - 1])


def tour(page: Page) -> dict[str, object]:
    return page.evaluate("document.querySelector('.stage').__stage.choices.tour")


def go_to(page: Page, step: int) -> None:
    page.locator(".steps .dots button").nth(step - 1).click()
    wait_for_step(page, step)


@pytest.mark.parametrize("link", ["digit=7&patch_size=4", "tab=photos"])
def test_the_arrow_keys_walk_through_all_eight_steps(page: Page, address: str, link: str) -> None:
    errors = open_tour(page, address, link)
    page.locator(".steps .dots button").first.focus()
    figures = [""]
    is_new = "text => document.querySelector('.steps .figure').innerText !== text"
    for step in range(1, 9):
        wait_for_step(page, step)
        assert page.locator(".steps .dots [aria-current=step]").inner_text() == str(step)
        page.wait_for_function(is_new, arg=figures[-1])
        figures.append(figure(page).inner_text())
        assert not [line for line in page.locator(".steps .arithmetic").all_inner_texts() if " = " in line], "rounded"
        assert page.locator(".steps .shapes code").count() == 2
        assert 1 <= page.locator(".steps .code pre").count() <= 4
        page.keyboard.press("ArrowRight")
    wait_for_step(page, 8)  # there is nothing after it
    for key, step in (("ArrowLeft", 7), ("Home", 1), ("End", 8)):
        page.keyboard.press(key)
        wait_for_step(page, step)
    assert len(set(figures)) == 9
    assert not errors


def test_arrow_keys_on_the_picture_choose_a_patch_and_the_buttons_cover_nothing(
    window: Callable[..., Page], address: str
) -> None:
    page = window((1280, 720))
    open_tour(page, address)
    page.locator(".steps .tour-picture").click(position={"x": 10, "y": 10})
    assert tour(page)["patch"] == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.querySelector('.stage').__stage.choices.tour.patch === 8")
    wait_for_step(page, 1)
    figure(page).get_by_text("Patch 9 of 49: row 2, column 2.").wait_for()
    page.locator(".steps").evaluate("steps => steps.scrollIntoView()")
    for scroll in (0, 200):
        page.evaluate("y => window.scrollBy(0, y)", scroll)
        walk = page.locator(".steps .walk").bounding_box()
        for part in ("quiz", "code", "figure", "seen"):
            box = page.locator(f".steps .{part}").bounding_box()
            assert walk["y"] + walk["height"] <= box["y"], part
    assert page.locator(".steps .next").bounding_box()["y"] < 720


def test_one_head_is_that_of_the_package(page: Page, address: str) -> None:
    open_tour(page, address)
    go_to(page, 4)
    page.locator(".steps select[data-key=block]").select_option("1")
    page.locator(".steps select[data-key=head]").select_option("2")
    page.locator(".steps .tour-picture").click(position={"x": 5, "y": 5})
    page.mouse.move(0, 0)
    page.locator(".steps .prompt", has_text="row 1, column 1, attend to most in head 3 of block 2?").wait_for()
    page.locator(".steps .reveal").click()
    page.locator(".steps .behind summary").click()
    page.locator(".steps .picture-caption", has_text="row 1, column 1 attends to in head 3 of block 2").wait_for()
    code = page.locator(".steps .code").inner_text()
    fused, _, rest = code.partition("F.scaled_dot_product_attention(q, k, v")
    assert "softmax" not in fused and "compute them outside the network" in rest.partition("softmax")[0]
    assert page.locator(".steps .figure", has_text=") ≈ ").count() == 1 and ") = " not in figure(page).inner_text()
    expected = vit_demo.explore(example_picture(7), "digits-small").attention(1, 2, (0, 0))
    shares = page.locator(".steps .share-row:not(.total)").all_inner_texts()[1:]
    for row in shares:
        name, _, share = (*row.split("\n"), "")[:3]
        if name.startswith("row "):
            i, j = (int(word) - 1 for word in name.replace("row ", "").split(", column "))
            assert float(share.split("\u00a0")[0]) == pytest.approx(100 * expected[i, j], abs=0.06)


def test_the_bars_of_heads_sum_to_the_logit_of_the_package(page: Page, address: str) -> None:
    open_tour(page, address)
    go_to(page, 5)
    figure(page).locator(".parts").wait_for()
    parts = vit_demo.explore(example_picture(7), "digits-small").contributions()
    numbers = [float(text.replace("−", "-")) for text in figure(page).locator(".parts small").all_inner_texts()[5:]]
    table = np.array(numbers).reshape(6, 5)
    np.testing.assert_allclose(table, np.concatenate([parts.heads, parts.mlps[:, None]], 1), atol=0.006)
    *terms, total = (float(found) for found in re.findall(r"-?[\d.]+", written(page)))
    assert len(terms) == 4 and sum(terms) == pytest.approx(total, abs=0.03)
    assert total == pytest.approx(parts.logit, abs=0.006)
    assert table.sum() + terms[2] + terms[3] == pytest.approx(total, abs=0.2), "each bar's number is rounded"
    figure(page).locator("[data-key='part 4.2']").click()
    page.locator(".steps .picture-caption", has_text="in head 3 of block 5").wait_for()
    assert figure(page).locator(".parts [aria-pressed=true]").get_attribute("data-key") == "part 4.2"


def written(page: Page) -> str:
    return figure(page).locator(".parts + .arithmetic").inner_text().replace("−", "-")


def test_a_question_hides_the_answer_until_it_is_answered(page: Page, address: str) -> None:
    open_tour(page, address)
    go_to(page, 7)
    rows = figure(page).locator(".rows")
    assert "veiled" in (rows.get_attribute("class") or "") and rows.get_attribute("aria-hidden") == "true"
    bars = "bars => bars.map((bar) => [getComputedStyle(bar).backgroundColor, bar.clientWidth].join())"
    assert len(set(rows.locator(".track i").evaluate_all(bars))) == 1, "neither colour nor length tells the answer"
    page.locator(".steps .option").first.click()
    page.locator(".steps .why", has_text="It leads").wait_for()
    assert "veiled" not in (rows.get_attribute("class") or "")
    assert page.locator(".steps .option.right").count() == 1
    words = [row.split("\n")[1] for row in rows.locator("li").all_inner_texts()]
    ranking = vit_demo.explore(example_picture(7), "digits-small").logit_lens()
    assert words == [depth[0][0] for depth in ranking]
    go_to(page, 1)
    page.locator(".steps .reveal").click()
    page.locator(".steps .why", has_text="196. Each patch becomes four").wait_for()
    go_to(page, 7)
    page.locator(".steps .why", has_text="It leads").wait_for()


def test_the_marked_patch_is_where_the_chosen_token_looks(page: Page, address: str) -> None:
    open_tour(page, address)
    go_to(page, 4)
    page.locator(".steps").get_by_role("button", name="From the class token").click()
    page.locator(".steps select[data-key=head]").select_option("2")
    page.locator(".steps .prompt", has_text="does the class token attend to most in head 3 of block 4?").wait_for()
    assert page.locator(".steps .shares").count() == 0, "the table would tell the answer"
    page.locator(".steps .reveal").click()
    page.locator(".steps .picture-caption", has_text="What the class token attends to in head 3 of block 4").wait_for()
    page.locator(".steps .shares").wait_for()
    attention = vit_demo.explore(example_picture(7), "digits-small").attention(3, 2)
    row, column = np.unravel_index(attention.argmax(), attention.shape)
    assert page.locator(".steps .option.right").inner_text().endswith(f"row {row + 1}, column {column + 1}")
    page.locator(".steps .tour-picture").hover(position={"x": 340 * (column + 0.5) / 7, "y": 340 * (row + 0.5) / 7})
    page.locator(".steps .picture-caption", has_text=f"{100 * attention.max():.1f}").wait_for()


def test_a_step_whose_numbers_are_late_does_not_take_answers_to_the_question_before(page: Page, address: str) -> None:
    open_tour(page, address)
    held: list[Route] = []
    page.route(
        "**/vit_demo/request",
        lambda route: held.append(route) if "steps_block" in (route.request.post_data or "") else route.continue_(),
    )
    go_to(page, 4)
    page.wait_for_function("document.querySelector('.steps').classList.contains('loading')")
    hits = """() => [...document.querySelectorAll('.steps .quiz button')].filter((button) => {
        const { x, y, width, height } = button.getBoundingClientRect();
        return width && button.contains(document.elementFromPoint(x + width / 2, y + height / 2));
    }).length"""
    assert page.get_by_text("how many would there be").is_visible(), "the step before stays, dimmed"
    assert page.evaluate(hits) == 0
    for route in held:
        route.continue_()
    page.locator(".steps .prompt", has_text="Which of the marked patches").wait_for()
    assert page.evaluate(hits) == 5


def test_hovering_costs_no_request(page: Page, address: str) -> None:
    open_tour(page, address)
    go_to(page, 3)
    model = vit_demo.load("digits-small", patch_size=4, device="cpu")
    patch = int(figure(page).locator(".sequence .chosen").inner_text()) - 1
    position = model.pos_embed_for((7, 7))[0, model.num_pos_embed_prefix + patch]
    changed = int(position.abs().argmax()) + 1
    figure(page).get_by_text(f"number {changed}: ").wait_for()
    page.locator(".steps .reveal").click()
    caption = page.locator(".steps .picture-caption")
    caption.get_by_text("Similarity of positions").wait_for()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    picture = page.locator(".steps .tour-picture")
    for place in (20, 120, 220, 300):
        picture.hover(position={"x": place, "y": place})
    caption.get_by_text("row 7, column 7").wait_for()
    assert not sent


def test_a_new_picture_starts_with_its_own_numbers(page: Page, address: str) -> None:
    open_tour(page, address)
    go_to(page, 8)
    run = page.locator(".stage").get_attribute("data-run")
    page.get_by_role("tab", name="Photo").click()
    page.wait_for_function("run => document.querySelector('.stage').dataset.run !== run", arg=run)
    page.locator(".steps .prompt", has_text="lion").wait_for()
    page.locator(".steps .reveal").click()
    assert figure(page).locator(".rows li").first.inner_text().split("\n")[1] == "lion"


def test_a_phone_shows_each_step_without_scrolling_sideways(phone: Page, address: str) -> None:
    open_tour(phone, address)
    for step in range(1, 9):
        wait_for_step(phone, step)
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        phone.locator(".steps .next" if step < 8 else ".steps .to-build").tap()
    phone.locator(".build").wait_for()  # the last button leads there


def test_the_figures_follow_the_theme(page: Page, address: str) -> None:
    open_tour(page, address)
    page.locator(".steps .dots button").nth(3).click()
    wait_for_step(page, 4)
    page.locator(".steps .reveal").click()
    page.locator(".steps .cells-row canvas").first.wait_for()
    dark, light = [[150, 137, 255], [240, 150, 70]], [[91, 75, 219], [201, 102, 20]]

    def painted() -> list[list[int]]:
        return page.locator(".steps .cells-row canvas").first.evaluate(
            """canvas => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
                const found = [];
                for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) found.push([...data.slice(i, i + 3)]);
                return found;
            }"""
        )

    def distance(pixel: list[int], colours: list[list[int]]) -> float:
        return min(max(abs(a - b) for a, b in zip(pixel, colour, strict=True)) for colour in colours)

    first = page.evaluate("document.body.classList.contains('dark')")
    for theme in (dark, light) if first else (light, dark):
        wait_until(page, lambda theme=theme: painted() and all(distance(pixel, theme) <= 3 for pixel in painted()))
        page.locator("#theme").click()
        page.locator(".steps .figure").scroll_into_view_if_needed()
