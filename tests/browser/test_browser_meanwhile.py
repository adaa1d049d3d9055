"""What a visitor does while something else is under way, and what stays of it afterwards."""

from .choosing import STAGE, Page, Route, choose_method, open_section, rub, wait_a_moment, wait_until

DROP_WORDS = """() => {
  const data = new DataTransfer();
  data.items.add(new File(["words"], "notes.pdf", { type: "application/pdf" }));
  const options = { bubbles: true, cancelable: true, dataTransfer: data };
  for (const name of ["dragenter", "dragover", "drop"]) {
    document.querySelector(".paper").dispatchEvent(new DragEvent(name, options));
  }
}"""


def is_map(route: Route) -> bool:
    return '"map"' in (route.request.post_data or "")


def test_a_section_opened_while_a_result_is_awaited_stays_open(opened: Page):
    choose_method(opened, "Relevance")
    opened.locator(".subject", has_text="for 7").wait_for()
    held: list[Route] = []

    opened.route("**/vit_demo/request", lambda route: (held.append if is_map(route) else Route.continue_)(route))
    opened.get_by_role("button", name="Example 3").click()
    wait_until(opened, lambda: held)
    open_section(opened, "Compare")
    held[0].continue_()
    opened.wait_for_selector('.stage[data-top1="3"]')
    assert opened.locator("#header [aria-current=true]").inner_text() == "Compare"
    assert opened.evaluate(f"{STAGE}.choices.section") == "compare"


def test_a_link_asks_nothing_about_the_result_that_it_replaces(opened: Page):
    held: list[Route] = []
    asked: list[dict] = []

    def hold_result(route: Route) -> None:
        asked.append(route.request.post_data_json)
        if asked[-1]["kind"] == "result":
            held.append(route)
        else:
            route.continue_()

    opened.route("**/vit_demo/request", hold_result)
    opened.evaluate("location.hash = '#digit=3&model=digits-tiny&method=relevance&block=12&patch=49&class=3&removed=2'")
    wait_until(opened, lambda: held)
    opened.locator("#stage .picture").hover(position={"x": 20, "y": 20})
    opened.locator("#stage .picture").hover(position={"x": 60, "y": 60})
    wait_a_moment(opened)
    assert [request["kind"] for request in asked] == ["result"]
    assert opened.evaluate(f"[{STAGE}.current().predictions[0].label, {STAGE}.choices.block]") == ["7", 5]
    held[0].continue_()
    opened.wait_for_function(f"{STAGE}.current().predictions[0].label === '3'")
    wait_until(opened, lambda: len(held) == 2)
    assert held[1].request.post_data_json["source"]["dropped"] == [1]
    held[1].continue_()
    opened.wait_for_function(f"{STAGE}.current().dropped.length === 1")
    opened.locator(".subject", has_text="for 3 · relevance").wait_for()
    models = {request["source"]["preset"] for request in asked if request["kind"] != "method_docs"}
    assert models == {"digits-tiny"} and "removed=2" in opened.url


def test_the_back_button_leaves_patches_dropped(opened: Page):
    rub(opened)
    opened.locator("#stage .picture").click(position={"x": 20, "y": 20})
    opened.wait_for_function(f"{STAGE}.current().dropped.length === 1")
    opened.locator(".bars button").nth(1).click()
    opened.locator(".subject", has_text="Libra FullGrad+").wait_for()
    opened.go_back()
    opened.wait_for_function("document.querySelector('.subject').innerText === ''")  # the first map
    assert opened.evaluate(f"{STAGE}.current().dropped.length") == 1


def test_a_file_that_is_no_picture_gets_a_sentence_and_what_is_still_shown_lets_the_pointer_through(opened: Page):
    opened.evaluate(DROP_WORDS)
    before = opened.evaluate(f"{STAGE}.current().run")
    opened.locator("#pad .problem", has_text="This is not a picture: choose a photo.").wait_for()
    assert opened.evaluate(f"{STAGE}.current().run") == before, "the drawing stays"
    assert opened.get_by_role("tab", name="Digit").get_attribute("aria-selected") == "true"
    held: list[Route] = []
    opened.route("**/vit_demo/request", lambda route: (held.append if is_map(route) else Route.continue_)(route))
    choose_method(opened, "Occlusion")
    opened.locator("#stage .outdated").wait_for()
    opened.locator("#stage .picture").hover(position={"x": 20, "y": 20})
    held[0].continue_()


def test_a_network_built_without_a_picture_stays_when_one_comes(page: Page, address: str):
    page.goto(f"{address}#tab=digits&picture=none&section=build&network=ViT-Tiny,depth:3")
    page.wait_for_selector('.stage[data-ready="empty"]')
    build = page.get_by_role("button", name="Build", exact=True)
    depth = page.locator(".build").get_by_label("Depth")
    for _ in range(2):
        assert build.get_attribute("aria-current") == "true" and depth.input_value() == "3"
        page.get_by_label("Example 3").evaluate("button => button.click()")  # the inputs are not in sight here
        page.wait_for_selector('.stage[data-top1="3"]')
    assert "section=build" in page.url
