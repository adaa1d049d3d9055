"""axe-core finds nothing in what the page adds to Gradio, on desktop and phone, light and dark, in every panel."""

import os
from pathlib import Path

import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture

from .choosing import STAGE, Page, choose_method, load_steps, method_button, open_page, settings, wait_a_moment

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "node_modules", *map(Path, filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)))]
AXE = next((path for folder in FOLDERS if (path := folder / "axe-core" / "axe.min.js").is_file()), None)

GRADIOS_OWN = {"aria-prohibited-attr", "color-contrast", "label-content-name-mismatch", "image-redundant-alt"}

SECTIONS = {
    "features": ".drawer.tokens",
    "steps": ".steps .figure > *",
    "compare": ".compare dl dd",
    "build": ".train:visible",
}

FIND = """async ([own, only]) => {
  const preload = { assets: ["media"] }; // of style sheets no rule that runs asks anything
  const found = await axe.run(document, { resultTypes: ["violations"], preload, ...(only && { runOnly: only }) });
  return found.violations.flatMap(({ id, nodes }) => nodes
    .filter(({ target }) => {
      const element = document.querySelector(target[0]);
      return element?.closest(".html-container, #header") || !own.includes(id);
    })
    .map(({ target, failureSummary }) => `${id}: ${target[0]}: ${failureSummary.split("\\n")[1]}`));
}"""

OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules whose answer depends on the theme."""

TRANSITIONS_END = """async () => {
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const ending = document.getAnimations().filter((each) => each.effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(ending.map((each) => each.finished));
}"""


def problems(page: Page, rules: list[str] | None = None) -> list[str]:
    page.evaluate(TRANSITIONS_END)  # colours on their way have less contrast
    return page.evaluate(FIND, [sorted(GRADIOS_OWN), rules])


def problems_of_both_themes(page: Page) -> list[str]:
    found = problems(page)
    page.locator("#theme").evaluate("button => button.click()")  # wherever it is, and without closing a panel
    found += [f"the other theme, {problem}" for problem in problems(page, OF_COLOURS)]
    page.locator("#theme").evaluate("button => button.click()")
    return found


def open_panels(page: Page) -> None:
    """Shows everything that is folded: all heads, tests of the heatmap, all methods, how the map is computed."""
    page.get_by_role("button", name="All heads").click()
    load_steps(page)
    page.get_by_role("button", name="Test these colours").click()
    page.locator(".randomization", has_text="random weights").wait_for()
    method_button(page, "Rollout").check()
    settings(page)
    page.get_by_text("How is this computed?").click()
    page.get_by_text("Source and details").click()
    page.locator(".method-docs a").first.wait_for()


@pytest.mark.skipif(AXE is None, reason="needs `npm ci`")
@pytest.mark.parametrize(("screen", "theme"), [("page", "light"), ("phone", "dark")])
def test_axe_finds_nothing_of_ours(request: pytest.FixtureRequest, address: str, screen: str, theme: str) -> None:
    page: Page = request.getfixturevalue(screen)
    page.emulate_media(color_scheme=theme)
    assert AXE is not None
    found = []
    for tab, link in (("Digit", "tab=digits"), ("Photo", "tab=photos&patch_size=20"))[: 2 if screen == "page" else 1]:
        page.goto("about:blank")
        open_page(page, f"{address}?__theme={theme}#{link}")
        page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        for panels in ("closed", "open") if tab == "Digit" else ("open",):
            if panels == "open":
                open_panels(page)
            found += [f"{tab}, panels {panels}: {problem}" for problem in problems_of_both_themes(page)]
        page.locator(".tour").evaluate("button => button.click()")
        page.locator(".film-line").wait_for()
        page.wait_for_function(f"{STAGE}.film().now().moment")  # its numbers are there
        page.keyboard.press("End")
        page.locator(".keep").wait_for()
        found += [f"{tab}, film: {problem}" for problem in problems_of_both_themes(page)]
        page.keyboard.press("Escape")
        if tab == "Digit":
            for name, content in SECTIONS.items():
                page.evaluate("section => { location.hash = `section=${section}` }", name)
                if name == "build":
                    page.get_by_text("Change the network").click()
                page.locator(content).first.wait_for()
                found += [f"{name}: {problem}" for problem in problems(page)]
    assert not found, "\n".join(found)


def test_arrow_keys_choose_within_each_group_and_patches_are_read_out(opened: Page) -> None:
    settings(opened).get_by_role("radio", name="attends to", exact=True).focus()
    opened.keyboard.press("ArrowRight")
    assert opened.get_by_role("radio", name="attended to by").is_checked()
    opened.locator("[data-mode=rub]").click()  # in Draw they move the pen
    opened.locator(".picture").focus()
    news = opened.locator(".explore > .spoken")
    for key, place in (("ArrowRight", "row 4, column 4"), ("ArrowDown", "row 5, column 4")):
        opened.keyboard.press(key)
        opened.wait_for_function(
            "place => document.querySelector('.explore > .spoken').innerText.includes(place)", arg=place
        )
        assert opened.locator(".value").inner_text().partition(": ")[2] in news.inner_text()
    choose_method(opened, "Libra FullGrad+")
    opened.locator(".subject", has_text="Libra FullGrad+").wait_for()
    opened.locator(".picture").focus()
    opened.keyboard.press("ArrowDown")
    opened.wait_for_function("document.querySelector('.explore > .spoken').innerText.match(/evidence (for|against)/)")


def test_forced_colours_keep_bars_tracks_the_scale_the_pens_and_the_pad(page: Page, address: str) -> None:
    page.emulate_media(forced_colors="active")
    open_page(page, address)

    def style(selector: str, name: str) -> str:
        return page.locator(selector).first.evaluate("(element, name) => getComputedStyle(element)[name]", name)

    assert style(".bars .track", "backgroundColor") != style(".bars .track i", "backgroundColor")
    assert "gradient" in style(".scale i", "backgroundImage")
    assert style('.tool[data-pen="thin"] i', "backgroundColor") != style("body", "backgroundColor")
    assert style(".sheet", "borderTopWidth") == "1px"
    assert style('.tool[aria-pressed="true"]', "outlineStyle") == "solid"


def test_the_theme_is_switched_in_sight_and_kept(page: Page, address: str) -> None:
    def is_dark() -> bool:
        return page.evaluate("document.body.classList.contains('dark')")

    open_page(page, address)
    before = is_dark()
    page.get_by_role("button", name="Switch between light and dark").click()
    assert is_dark() != before
    page.reload()
    page.wait_for_selector('.stage[data-ready="true"]')
    assert is_dark() != before
    open_page(page, f"{address}?__theme={'dark' if before else 'light'}")
    assert is_dark() == before, "an address with a theme has its own"


def test_terms_are_explained_on_hover_and_with_the_keyboard(opened: Page) -> None:
    opened.locator("[data-block='1']").click()
    term = opened.locator(".sentence .term", has_text="class token")
    tooltip = opened.get_by_role("tooltip")
    term.hover()
    assert "the prediction is read from it" in tooltip.inner_text()
    opened.mouse.move(5, 5)
    tooltip.wait_for(state="hidden")
    opened.locator(".sentence .term", has_text="block").focus()
    assert "One layer of the network" in tooltip.inner_text()
    opened.keyboard.press("Escape")
    tooltip.wait_for(state="hidden")


SMALL = """() => [...document.querySelectorAll("#header *, #columns *, #footer *")]
  .filter((element) => element.matches("button, select, summary, a, input"))
  .filter((element) => element.getClientRects().length && !element.matches("#skip, .term, .file"))
  .filter((element) => (element.closest("label") ?? element).getBoundingClientRect().height < 43.5)
  .map((element) => element.outerHTML.slice(0, 100))"""


def test_whatever_a_finger_touches_is_44_pixels_high(phone: Page, address: str) -> None:
    open_page(phone, address)
    phone.locator(".tour").click()
    for key in ("ArrowRight", "End"):
        phone.locator(".film-line").wait_for()
        phone.keyboard.press(key)
        assert phone.evaluate(SMALL) == phone.evaluate(TINY) == [], "the film"
    phone.keyboard.press("Escape")
    for section, content in {"attention": ".bars .first", **SECTIONS}.items():
        phone.evaluate("section => { location.hash = `section=${section}` }", section)
        phone.locator(content).first.wait_for()
        assert phone.evaluate(SMALL) == [], section
        assert phone.evaluate(TINY) == [], f"{section}: no text under 13 px"
    phone.evaluate("location.hash = 'tab=photos&method=libra_fullgrad'")
    settings(phone)
    assert phone.evaluate(SMALL) == []


TINY = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = new Set();
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const { parentElement: box } = node;
    const isShown = node.data.trim() && box.checkVisibility({ visibilityProperty: true });
    const size = parseFloat(getComputedStyle(box).fontSize); // 0 where a shorter text stands before it
    if (isShown && size && size < 13) found.add(box.outerHTML.slice(0, 100));
  }
  return [...found];
}"""


def focused(page: Page, presses: int) -> list[str]:
    """What has the focus after each press of Tab."""
    found = []
    for _ in range(presses):
        page.keyboard.press("Tab")
        name = "(e => e.dataset.control || e.id || e.className || e.ariaLabel || e.innerText)(document.activeElement)"
        found.append(page.evaluate(name))
    return found


def test_the_focus_goes_as_the_eye_does_and_can_skip_to_the_result(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    order = focused(page, 50)
    parts = ("skip", "Explore", "Lessons", "language", "theme", "tab-digits", "preset")
    controls = ("primary tour", "picture", "small again", "link trust", "link settings", "cell")
    places = [next(i for i, name in enumerate(order) if name.endswith(part)) for part in (*parts, *controls)]
    assert places == sorted(places) and places[0] == 0
    assert page.locator("#skip").bounding_box()["height"] >= 44
    stops = "group => [...document.querySelectorAll(`${group} button`)].filter(({ tabIndex }) => !tabIndex).length"
    assert [page.evaluate(stops, group) for group in (".pens", ".digits", ".cells")] == [1, 1, 1]
    page.locator(".digits button").first.focus()
    for key in ("ArrowRight", "End", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.ariaLabel") == "Example 8"
    page.locator("#theme").click()
    assert page.locator("body.dark").count() == 1
    page.emulate_media(media="print")
    page.locator("body:not(.dark)").wait_for()
    assert page.locator("#model select").is_visible() and page.locator("#patch-size").is_visible()
    assert page.locator(".scale").is_visible()
    page.emulate_media(media="screen")
    page.locator("body.dark").wait_for()
    page.locator("#theme").click()
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.className") == "picture"


def test_the_map_is_a_table_too_which_names_the_strongest_patch(opened: Page) -> None:
    settings(opened).get_by_text("The map as a table").click()
    expected = 100 * vit_demo.explore(example_picture(7), "digits-small", patch_size=4).attention()
    cells = opened.locator(".map-table td").all_inner_texts()
    found = [float(text.replace("%", "").replace("\u00a0", "").replace("<", "")) for text in cells]
    assert found == pytest.approx(expected.ravel().tolist(), abs=0.06)
    row, column = divmod(int(expected.argmax()), 7)
    assert f"row {row + 1}, column {column + 1}" in opened.locator(".peak-place").inner_text()
    assert opened.get_by_role("table").get_by_role("rowheader").count() == 7
    method_button(opened, "Rollout").check()
    opened.wait_for_function("document.querySelector('.map-table caption').innerText.includes('rollout')")


SPEAKING = """() => {
  window.spoken = [];
  const regions = document.querySelectorAll("[aria-live], [role=status], [role=alert]");
  const listen = (region) => new MutationObserver(() => {
    if (region.textContent.trim() && region.getClientRects().length) window.spoken.push(region.className);
  }).observe(region, { childList: true, characterData: true, subtree: true });
  regions.forEach(listen);
}"""


def test_one_region_speaks_at_a_time(opened: Page) -> None:
    opened.evaluate(SPEAKING)
    actions = (
        lambda: opened.locator("#patch-size").get_by_text("7", exact=True).click(),
        lambda: opened.get_by_role("button", name="Example 3").click(),
        lambda: opened.get_by_role("tab", name="Photo").click(),
    )
    for action in actions:
        opened.evaluate("window.spoken.length = 0")
        run = opened.locator(".stage").get_attribute("data-run")
        action()
        opened.wait_for_selector(f'.stage[data-state="done"]:not([data-run="{run}"])')
        wait_a_moment(opened)
        assert set(opened.evaluate("window.spoken")) <= {"visually-hidden spoken-answer"}
    opened.wait_for_function("window.spoken.length")  # the prediction
