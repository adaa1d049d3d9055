"""Links restore the sections of the stage, too: what the tokens hold, the eight steps, Compare and Build."""

from collections.abc import Callable

from .acts import REWRITTEN
from .choosing import (
    Page,
    close_settings,
    method_button,
    middle_of,
    open_page,
    open_section,
    open_steps,
    settle_address,
    wait_until,
)

CHOICES = "document.querySelector('.stage').__stage.choices"


def seen_elsewhere(page: Page, window: Callable[..., Page], look: Callable[[Page], object], wanted: object) -> None:
    """The link shows the same to a visitor with a fresh browser, and after a reload."""
    settle_address(page)
    other = open_page(window(kind="other visitor"), page.url)
    page.reload()
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    assert look(other) == look(page) == wanted and other.url == page.url


def test_features_with_a_second_picture(opened: Page, window: Callable[..., Page]) -> None:
    method_button(opened, "Similarity").check()
    opened.get_by_label("Second picture").select_option("Digit 3")
    opened.locator("[data-control=block]").fill("4")
    opened.locator(".subject", has_text="(left) · block 4").wait_for()
    opened.mouse.click(*middle_of(opened.locator(".second-view canvas"), 1, 2))
    opened.mouse.move(5, 5)

    def look(page: Page) -> list[str]:
        page.locator(".subject", has_text="(right) · block 4").wait_for()
        shown = page.locator(".second-view canvas").evaluate("canvas => canvas.toDataURL()")
        return [page.locator(".subject").inner_text(), shown]

    wanted = look(opened)
    assert wanted[0].startswith("square in row 2, column 3 (right)")
    seen_elsewhere(opened, window, look, wanted)


def test_the_settings_of_the_features(opened: Page, window: Callable[..., Page]) -> None:
    method_button(opened, "Similarity").check()
    opened.locator(".subject", has_text="block 6").wait_for()
    method_button(opened, "PCA").press(" ")
    opened.get_by_role("radio", name="hidden").press(" ")
    method_button(opened, "Segments").press(" ")
    opened.locator("[data-feature=k]").fill("9")
    opened.locator("[data-control=opacity]").fill("35")

    def look(page: Page) -> list[object]:
        page.locator(".subject", has_text="9 segments").wait_for()
        chosen = page.evaluate(f"{CHOICES}.features")
        return [chosen["k"], chosen["opacity"], chosen["background"], page.locator(".chip").count()]

    assert look(opened) == [9, 0.35, True, 9]
    seen_elsewhere(opened, window, look, [9, 0.35, True, 9])
    opened.go_back()
    opened.locator(".subject", has_text="principal components").wait_for()
    opened.go_back()
    opened.locator(".subject", has_text="square in row").wait_for()


def test_a_step_of_the_tour_with_its_patch_and_head(opened: Page, window: Callable[..., Page]) -> None:
    open_steps(opened)
    opened.locator(".steps .title").wait_for()
    opened.locator(".steps .dots button").nth(3).click()
    opened.locator(".steps .reveal").click()
    opened.locator(".steps .shares").wait_for()
    opened.mouse.click(*middle_of(opened.locator(".steps .seen canvas"), 1, 3))
    opened.locator(".steps .figure select, .steps .figure input").first.wait_for()

    def look(page: Page) -> list[object]:
        page.locator(".steps .prompt").wait_for()
        if page.locator(".steps .reveal").is_visible():
            page.locator(".steps .reveal").click()
        page.locator(".steps .shares").wait_for()
        page.locator(".steps:not(.loading)").wait_for()
        tour = page.evaluate(f"{CHOICES}.tour")
        title, shares = page.locator(".steps .count").inner_text(), page.locator(".shares").inner_text()
        return [title, tour["step"], tour["patch"], shares]

    opened.locator(".steps:not(.loading)").wait_for()
    wanted = look(opened)
    assert wanted[1:3] == [3, 10]
    seen_elsewhere(opened, window, look, wanted)
    opened.locator(".steps .next").click()
    opened.locator(".steps .count", has_text="Step 5").wait_for()
    opened.go_back()
    opened.locator(".steps .count", has_text="Step 4").wait_for()


def test_the_columns_of_a_comparison(opened: Page, window: Callable[..., Page]) -> None:
    open_section(opened, "Compare")
    opened.locator(".compare .column:not(.pending)").nth(2).wait_for()
    column = opened.get_by_role("region", name="Column 2")
    column.get_by_label("Method").select_option("Relevance")
    column.get_by_label("Model").select_option("Digits, tiny")
    opened.get_by_role("region", name="Column 3").get_by_role("button", name="Delete this column").click()

    def look(page: Page) -> list[object]:
        page.wait_for_function(
            "document.querySelectorAll('.compare .column dl dd').length === 16"
            " && !document.querySelector('.compare .pending')"
        )
        values = page.locator(".compare select").evaluate_all("all => all.map(each => each.value)")
        return [values, page.locator(".compare canvas").nth(1).evaluate("canvas => canvas.toDataURL()")]

    wanted = look(opened)
    assert '"digits-tiny"' in wanted[0] and '"relevance"' in wanted[0]
    seen_elsewhere(opened, window, look, wanted)


def test_the_network_that_was_built(opened: Page, window: Callable[..., Page]) -> None:
    open_section(opened, "Build")
    opened.get_by_text("Change the network").click()
    opened.get_by_label("Start from").select_option("MNIST from scratch")
    opened.get_by_label("Depth").fill("5")
    opened.get_by_label("The classifier reads").select_option("the mean of the patches")

    def look(page: Page) -> str:
        page.locator(".build pre", has_text="depth=5").wait_for()
        return page.locator(".build pre").inner_text()

    assert 'pool="mean"' in look(opened)
    seen_elsewhere(opened, window, look, look(opened))


def test_a_section_opens_whatever_a_link_says(page: Page, address: str) -> None:
    for link, shown in (
        (
            "features&features=pca&features_block=999&features_patch=9999&second=nobody&segments=1",
            ".subject:text('block 6 of 6')",
        ),
        (
            "steps&step=8&step_patch=10000&step_block=1000&step_head=1000&step_filter=9999",
            ".steps .count:text('Step 8')",
        ),
        (
            "compare&columns=nobody:4:rollout,digits-small:999:rollout,digits-small:4:constructor",
            ":nth-match(.compare .column:not(.pending), 3)",
        ),
        ("build&network=nothing,depth:5", ".build .begin"),
        ("build&network=ViT-Tiny,depth:100000,embed_dim:0", ".build .fields"),
        ("teach", ".teach"),
    ):
        open_page(page, f"{address}#tab=digits&section={link}")
        page.locator(shown).wait_for()
        wait_until(page, lambda: page.evaluate(REWRITTEN) == [])


def test_on_a_phone_the_section_of_a_link_is_in_sight_in_the_header(phone: Page, address: str) -> None:
    for name in ("build", "attention"):
        phone.goto("about:blank")
        open_page(phone, f"{address}#section={name}")
        box = phone.locator('#header [aria-current="true"]').bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390, name


def test_what_was_chosen_survives_a_change_of_section(quick: Page) -> None:
    method_button(quick, "Libra FullGrad+").check()
    close_settings(quick)
    quick.locator(".bars button").nth(1).click()
    kept = "({method, label, verb, section}) => ({method, label, verb, section})"
    look = f"({kept})({CHOICES})"
    quick.wait_for_function(f"{CHOICES}.method === 'libra_fullgrad' && {CHOICES}.label !== null")
    before = quick.evaluate(look)
    for section in ("Compare", "Build"):
        open_section(quick, section)
        quick.locator(f".{section.lower()}").wait_for()
        open_section(quick, "Explore")
        quick.locator(".explore .picture").wait_for()
        assert quick.evaluate(look) == before and before["method"] == "libra_fullgrad"
    quick.wait_for_function("location.hash.includes('method=libra_fullgrad') && location.hash.includes('class=')")
