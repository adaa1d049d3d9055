"""What the tokens hold, on the picture: values against the package, keys, and no request while looking around."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .acts import frames
from .choosing import STAGE, Page, close_settings, method_button, middle_of, open_anew, rub, settings


@pytest.fixture(scope="module")
def seven() -> vit_demo.Exploration:
    return vit_demo.explore(example_picture(7), "digits-small", patch_size=4)


@pytest.fixture(scope="module")
def page(lasting_window: Callable[..., Page]) -> Page:
    """One that all tests of this file share."""
    return lasting_window()


def open_features(page: Page, address: str) -> Page:
    open_anew(page, f"{address}#digit=7&patch_size=4")
    method_button(page, "Similarity").check()
    page.locator(".subject", has_text="block 6 of 6").wait_for()
    page.locator(".answers > span").first.wait_for()
    return page


@pytest.fixture
def features(page: Page, address: str) -> Page:
    open_features(page, address)
    page.mouse.move(*point_at(page, 3, 3))  # the trace of the attention comes with the pointer, here, too
    page.wait_for_function(f"{STAGE}.current().traces.has(5)")
    page.mouse.move(5, 5)
    return page


def reading(page: Page) -> str:
    """The value under the pointer, once it is painted: the browser hands over moves and paints in different frames."""
    page.evaluate("new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    return page.locator(".value").inner_text().partition(": ")[2]


def point_at(page: Page, row: int, column: int, picture: int = 0, grid: int = 7) -> tuple[float, float]:
    return middle_of(page.locator(".second-view canvas" if picture else ".picture"), row, column, grid, grid)


def choose(page: Page, mode: str) -> None:
    """Chooses a mode with the keyboard, so that the pointer stays where it is."""
    method_button(page, mode).press(" ")


def number(text: str) -> float:
    found = re.search(r"[−-]?\d+(\.\d+)?", text)
    assert found, text
    return float(found[0].replace("−", "-"))


@pytest.fixture
def requests(features: Page) -> Iterator[list[str]]:
    """Addresses that the page requests from now on.

    Without Gradio's heartbeat, and the icon, which Chromium takes from its cache again whenever the address changes.
    """
    found: list[str] = []
    others = ("heartbeat", "icon.svg")
    features.on("request", lambda request: any(map(request.url.count, others)) or found.append(request.url))
    yield found


def test_what_is_read_under_the_pointer_is_the_packages(features: Page, seven: vit_demo.Exploration) -> None:
    features.mouse.click(*point_at(features, 2, 4))
    expected = seven.similarity((2, 4))
    for row, column in ((2, 4), (3, 3), (0, 6), (6, 3)):
        features.mouse.move(*point_at(features, row, column))
        assert number(reading(features)) == pytest.approx(expected[row, column], abs=6e-3)
        assert features.locator(".subject").inner_text().startswith("square in row 3, column 5 ")
    check_norms_segments_and_predictions(features, seven)


def test_hovering_and_choosing_costs_no_request(features: Page, requests: list[str]) -> None:
    for row in range(7):
        features.mouse.move(*point_at(features, row, row))
    assert features.locator(".subject").inner_text().startswith("square in row 7, column 7 ")
    for mode in ("PCA", "Segments", "Norms", "Predictions"):
        choose(features, mode)
        features.mouse.move(*point_at(features, 3, 3))
        assert reading(features)
    choose(features, "Segments")
    for k in ("2", "7", "12"):
        features.locator("[data-feature=k]").fill(k)
        features.evaluate("new Promise(requestAnimationFrame)")
        assert features.locator(".chip").count() == int(k)
    choose(features, "PCA")
    features.get_by_role("radio", name="hidden").press(" ")
    features.locator("[data-control=opacity]").fill("30")
    assert requests == []


def check_norms_segments_and_predictions(features: Page, seven: vit_demo.Exploration) -> None:
    norms, segments, lens = seven.norms(), seven.kmeans(5), seven.logit_lens(patches=True)[-1]
    for row, column in ((2, 3), (5, 1)):
        choose(features, "Norms")
        features.mouse.move(*point_at(features, row, column))
        assert number(reading(features)) == pytest.approx(norms[row, column], rel=5e-3)
        choose(features, "Segments")
        size = (segments == segments[row, column]).sum()
        assert reading(features) == f"segment {segments[row, column] + 1}: {size} squares"
        choose(features, "Predictions")
        label, probability = lens[row][column][0]
        first = reading(features).split(", ")[0].replace("\xa0", " ")
        assert first.startswith(f"{label} ") and number(first.split()[1]) == pytest.approx(100 * probability, abs=0.06)


def test_another_block_is_requested_once(features: Page, seven: vit_demo.Exploration) -> None:
    choose(features, "Norms")
    slider = features.locator("[data-control=block]")
    features.mouse.move(*point_at(features, 1, 1))
    for block in (2, 6, 2):
        slider.fill(str(block))
        features.locator(".subject", has_text=f"block {block} of 6").wait_for()
        features.wait_for_function(
            "wanted => Math.abs(document.querySelector('.value').innerText.split('length ')[1] - wanted) < 0.5",
            arg=float(seven.norms(block - 1)[1, 1]),
        )
    # While squares are rubbed out the colours stay until there are others.
    features.evaluate("""() => {
      const subject = document.querySelector(".subject");
      window.subjects = [];
      new MutationObserver(() => subjects.push(subject.innerText)).observe(subject, { childList: true, subtree: true });
    }""")
    rub(features)
    features.mouse.click(*point_at(features, 1, 1))
    features.wait_for_function(f"{STAGE}.current().dropped.length === 1")
    frames(features)
    assert not [each for each in features.evaluate("subjects") if "loading" in each]


def test_keys_move_the_patch_and_escape_leaves_it(features: Page) -> None:
    features.locator(".picture").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowRight"):
        features.keyboard.press(key)
    spoken = features.locator(".explore > .spoken", has_text="square in row 3, column 5")
    spoken.wait_for(state="attached")
    assert "cosine similarity 1.00" in spoken.inner_text()
    features.keyboard.press("Escape")
    features.locator(".subject", has_text="square in row 4, column 4").wait_for()
    close_settings(features)
    features.locator("#stage .predictions").get_by_role("button").nth(1).click()  # a class leads to its evidence
    features.locator("#stage .subject", has_text="Libra FullGrad+").wait_for()


def test_a_kept_picture_stands_beside_the_next(features: Page, seven: vit_demo.Exploration) -> None:
    before = features.locator(".view").bounding_box()
    second = features.get_by_label("Second picture")
    second.select_option(label="This one, beside the next")
    run = features.locator("#stage .stage").get_attribute("data-run")
    features.locator("#pad").get_by_role("button", name="Example 3").click()
    features.wait_for_selector(f"#stage .stage:not([data-run='{run}'])")
    settings(features)
    features.locator(".subject", has_text="(left)").wait_for()
    features.mouse.click(*point_at(features, 3, 3))
    features.mouse.move(*point_at(features, 2, 3, picture=1))
    three = vit_demo.explore(example_picture(3), "digits-small", patch_size=4)
    assert number(reading(features)) == pytest.approx(three.similarity((3, 3), other=seven)[2, 3], abs=6e-3)
    assert features.locator(".view").bounding_box() == before
    assert second.input_value() == "digit-7"
    second.select_option("None")
    features.locator(".second-view").wait_for(state="hidden")


def test_an_example_photo_and_one_of_ones_own_beside_the_first(features: Page) -> None:
    features.get_by_role("tab", name="Photo").click()
    features.wait_for_function("document.querySelector('.stage').__stage.current()?.source.example === 'lion'")
    settings(features)
    second = features.get_by_label("Second picture")
    second.select_option("Tabby cat")
    features.locator(".subject", has_text="(left)").wait_for()
    choose(features, "PCA")
    features.locator(".subject", has_text="both pictures together").wait_for()
    lion, cat = (vit_demo.explore(EXAMPLE_PHOTOS[name].path, "photos-tiny") for name in ("lion", "cat"))
    components = np.abs(lion.pca(other=cat)[2, 3])
    features.mouse.move(*point_at(features, 2, 3, grid=lion.grid[0]))
    found = [abs(float(part.replace("−", "-"))) for part in reading(features).split(" ", 1)[1].split(" · ")]
    assert found == pytest.approx(components, rel=0.02, abs=0.02)
    features.locator(".drawer input[type=file]").set_input_files(EXAMPLE_PHOTOS["koala"].path)
    features.wait_for_function("document.querySelector('.second').value.startsWith('own')")
    assert second.locator("option:checked").inner_text() == "koala.jpg"
    choose(features, "Similarity")
    features.mouse.click(*point_at(features, 4, 4, grid=lion.grid[0]))
    koala = vit_demo.explore(EXAMPLE_PHOTOS["koala"].path, "photos-tiny")
    expected = lion.similarity((4, 4), other=koala)[6, 5]
    features.locator(".subject", has_text="(left)").wait_for()
    features.mouse.move(*point_at(features, 6, 5, picture=1, grid=lion.grid[0]))
    features.wait_for_function(
        """wanted => {
            const text = document.querySelector('.value').innerText.split('similarity ')[1];
            return Math.abs(parseFloat(text?.replace('−', '-')) - wanted) < 0.006;
        }""",
        arg=float(expected),
    )


def test_nothing_overflows_on_a_phone_and_a_tap_chooses_a_patch(phone: Page, address: str) -> None:
    open_features(phone, address)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    close_settings(phone)
    phone.touchscreen.tap(*point_at(phone, 2, 2))
    phone.locator(".subject", has_text="square in row 3, column 3").wait_for()
