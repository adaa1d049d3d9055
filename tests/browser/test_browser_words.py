"""Words as classes on the page: from typing to the link, with the package's own numbers."""

from collections.abc import Iterator

import numpy as np
import pytest

import vit_demo
from vit_demo.service.engine import _engines
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from ..weights.hub_server import HubServer, served
from ..words.word_models import word_files
from .choosing import STAGE, Page, choose_method, launched, open_page, wait_a_moment

LION = EXAMPLE_PHOTOS["lion"].path


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    with served(tmp_path_factory.mktemp("cache")) as server:
        for kind in ("clip", "siglip"):
            server.repositories[f"words/{kind}"] = word_files(kind)
        yield server
    _engines.clear()  # its networks are not the real ones


@pytest.fixture(scope="module")
def address(hub: HubServer) -> Iterator[str]:
    with launched() as url:
        yield url


def enter(page: Page, words: str) -> None:
    page.locator("#words").fill(words)
    page.locator("#words").press("Enter")


def wait_for_words(page: Page, words: list[str]) -> None:
    try:
        page.wait_for_function(
            f"words => {{ const shown = {STAGE}.current()?.predictions.map(({{ name }}) => name) ?? [];"
            " return words.length === shown.length && words.every((word) => shown.includes(word)); }",
            arg=words,
        )
    except Exception as error:  # one of Playwright, which may not be installed
        said = page.locator(".job-text, .result-status").all_inner_texts()
        raise AssertionError(f"{page.url}: {said}") from error


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_from_typing_to_the_link(kind: str, page: Page, address: str) -> None:
    name = f"words/{kind}"
    open_page(page, f"{address}#tab=photos&model={name}&photo=lion")
    wait_for_words(page, ["a lion", "a cat", "a rock"])
    assert page.locator("#words").input_value() == "a lion, a cat, a rock"
    words = ["a cat", "lion", "🦁 & <b>"]
    enter(page, " a cat, lion,, 🦁 & <b>, lion")
    wait_for_words(page, words)
    result = vit_demo.explore(LION, name, labels=words)
    panel = page.locator("#stage .predictions")
    for word, probability in zip(words, result.probabilities, strict=True):
        row = panel.get_by_role("button").filter(has_text=word)
        shown = float(row.inner_text().split("\u00a0%")[0].split()[-1].removeprefix("<"))
        assert shown == pytest.approx(100 * probability, abs=0.11)
    note = "compare these words" if kind == "clip" else "probability of its own"
    assert note in panel.inner_text()
    panel.get_by_role("button").filter(has_text="lion").first.click()
    expected = result.heatmap("libra_fullgrad", "lion").ravel()
    page.wait_for_function(f"{STAGE}.scene().view.label === 1 && {STAGE}.scene().map")
    np.testing.assert_allclose(
        page.evaluate(f"Array.from({STAGE}.scene().map)"), expected, atol=1e-3 * float(np.abs(expected).max())
    )
    link = page.url
    assert "words=a%20cat,lion," in link
    other = page.context.new_page()
    open_page(other, link)
    wait_for_words(other, words)
    assert other.locator("#words").input_value() == "a cat, lion, 🦁 & <b>"
    other.wait_for_function(f"{STAGE}.scene().view.label === 1")
    other.go_back()
    other.close()
    page.go_back()
    page.go_back()
    wait_for_words(page, ["a lion", "a cat", "a rock"])
    choose_method(page, "Predictions")
    page.locator("#stage .legend").get_by_text("a ").first.wait_for()


def test_no_request_is_sent_letter_by_letter_and_too_much_gets_a_sentence(page: Page, address: str) -> None:
    open_page(page, f"{address}#tab=photos&model=words/clip&photo=lion")
    wait_for_words(page, ["a lion", "a cat", "a rock"])
    page.locator(".answers > span").first.wait_for()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.locator("#words").press_sequentially(", a cat, lion, a", delay=5)
    wait_a_moment(page)
    assert [url for url in requests if "vit_demo/request" in url] == []
    enter(page, ",".join(f"w{number}" for number in range(51)))
    sentence = "Write at most 50 words, with commas between them."
    page.locator("#stage .result-status", has_text=sentence).wait_for()
    enter(page, "lion")
    wait_for_words(page, ["lion", "(no words)"])
    shown = page.locator("#stage").inner_text()
    assert sentence not in shown and "empty text" in shown
    enter(page, "")
    wait_for_words(page, ["a lion", "a cat", "a rock"])

    # Other models have no words, and keep those of this one.
    enter(page, "lion, a cat")
    wait_for_words(page, ["lion", "a cat"])
    page.locator("#preset").select_option("photos-tiny")
    page.wait_for_function(f"{STAGE}.current()?.source.preset === 'photos-tiny'")
    assert page.locator("form.words").is_hidden() and "words" not in page.url
    page.locator("#preset").select_option("words/clip")
    wait_for_words(page, ["lion", "a cat"])
