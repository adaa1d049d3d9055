"""Heads: a switch makes one silent and everything follows; bars say what each is worth; one undo; links hold it."""

from collections.abc import Callable

import numpy as np
import pytest

from vit_demo import explore
from vit_demo.web.catalog.example_digits import example_picture

from ..percentages import percentage
from .choosing import STAGE, Page, open_page, rub, settle_address, shown_result, wait_until

SIZES = [(1440, 900), (1024, 700), (390, 844)]


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def mute(page: Page, block: int, head: int) -> None:
    page.locator(f"[data-silence='{block + 1}.{head + 1}']").click()


def silent(page: Page) -> list[list[int]]:
    found: list[list[int]] = page.evaluate(f"{STAGE}.current().silent")
    return found


@pytest.fixture
def heads(window: Callable[..., Page], address: str, request: pytest.FixtureRequest) -> Page:
    size = getattr(request, "param", SIZES[0])
    page = open_page(window(size, "phone" if size[0] < 500 else "desktop"), address)
    page.locator(".blocks .more").click()
    return page


@pytest.mark.parametrize("heads", SIZES, indirect=True, ids=str)
def test_a_switch_makes_a_head_silent_and_everything_follows(heads: Page) -> None:
    whole = shown_result(heads)
    mute(heads, 4, 2)
    mute(heads, 5, 1)
    wait_until(heads, lambda: silent(heads) == [[4, 2], [5, 1]])
    expected = whole.without(heads=[(4, 2), (5, 1)])
    label, share = expected.top(1)[0]
    wait_until(heads, lambda: f"Without 2 heads it still says {label}" in plain(heads.inner_text(".headline")))
    assert percentage(share).replace("\u00a0", " ") in plain(heads.inner_text(".headline"))
    assert heads.locator(".head.silent").count() == 2
    assert heads.locator(".head.silent .mute").first.get_attribute("aria-checked") == "false"
    shares = heads.evaluate(f"{STAGE}.current().predictions.map(({{ index, probability }}) => [index, probability])")
    np.testing.assert_allclose(np.array(sorted(shares))[:, 1], expected.probabilities, atol=1e-5)
    assert heads.evaluate("document.documentElement.scrollWidth <= innerWidth")
    settle_address(heads)
    assert "silent=5.3,6.2" in heads.url
    heads.locator(".undo-heads").click()
    wait_until(heads, lambda: silent(heads) == [[4, 2]])
    heads.locator(".all-heads").click()
    wait_until(heads, lambda: silent(heads) == [] and heads.locator(".head.silent").count() == 0)
    settle_address(heads)
    assert "silent" not in heads.url


def test_squares_and_heads_have_one_undo_and_a_link_holds_both(heads: Page, address: str) -> None:
    mute(heads, 0, 0)
    wait_until(heads, lambda: silent(heads) == [[0, 0]])
    rub(heads)
    heads.locator(".picture").click(position={"x": 20, "y": 20})
    wait_until(heads, lambda: heads.evaluate(f"{STAGE}.current().dropped.length") == 1 and silent(heads) == [[0, 0]])
    assert plain(heads.inner_text(".headline")).startswith("Without 1 head and 1 square it")
    settle_address(heads)
    link = heads.url
    heads.locator(".undo").click()
    wait_until(heads, lambda: not heads.evaluate(f"{STAGE}.current().dropped.length") and silent(heads) == [[0, 0]])
    heads.locator(".undo").click()
    wait_until(heads, lambda: silent(heads) == [])
    heads.goto("about:blank")
    open_page(heads, link)
    wait_until(heads, lambda: silent(heads) == [[0, 0]] and heads.locator(".head.silent").count() == 1)
    assert heads.evaluate(f"{STAGE}.current().dropped.length") == 1
    heads.goto("about:blank")
    open_page(heads, f"{address}#digit=8&silent=99.1,2.1")  # a head that is not there: said, and left out
    heads.get_by_text("There is no block 98").first.wait_for()
    wait_until(heads, lambda: heads.evaluate(f"{STAGE}.choices.silent") is None and silent(heads) == [])
    heads.goto("about:blank")
    columns = "digits-small:7:rollout,digits-small:7:rollout::silent"  # one beside the other
    heads.goto(f"{address}#digit=8&patch_size=7&silent=3.1,4.3,5.1,5.3,6.3&section=compare&columns={columns}")
    silenced = explore(example_picture(8), "digits-small", patch_size=7)
    silenced = silenced.without(heads=[(2, 0), (3, 2), (4, 0), (4, 2), (5, 2)])
    [(label, share)] = silenced.top(1)
    assert label == "3"
    heads.locator(".compare .column", has_text=f"{label}, {percentage(share)}").wait_for()
    predictions = [plain(text) for text in heads.locator(".compare dd:first-of-type").all_inner_texts()]
    assert predictions == ["8, >99.9 %", f"3, {plain(percentage(share))}"]


def test_bars_are_effects_and_the_least_important_are_silenced_until_the_answer_would_change(heads: Page) -> None:
    whole = shown_result(heads)
    heads.get_by_role("button", name="Which heads matter?").click()
    bars = heads.locator(".head .bar")
    heads.locator(".worth .found", has_text="loses without each head").wait_for()
    effects = whole.head_effects()
    widths = bars.evaluate_all("(bars) => bars.map((bar) => parseFloat(bar.firstChild.style.width) / 100)")
    expected = np.abs(effects).T.ravel() / np.abs(effects).max()
    np.testing.assert_allclose(widths, expected, atol=0.02)
    gains = bars.evaluate_all("(bars) => bars.map((bar) => bar.classList.contains('gains'))")
    assert gains == (effects.T.ravel() < 0).tolist()
    mute(heads, 0, 0)
    heads.locator(".worth .found", has_text="of before").wait_for()
    heads.locator(".undo-heads").click()
    heads.locator(".worth .found", has_text="loses without each head").wait_for()
    heads.get_by_role("button", name="Silence the least important").click()
    heads.locator(".worth .found", has_text="It keeps").wait_for()
    found = whole.enough_heads(share=0.9)
    assert found
    stay = {tuple(head) for head in found.heads}
    gone = [[block, head] for block in range(6) for head in range(4) if (block, head) not in stay]
    wait_until(heads, lambda: silent(heads) == gone)
    label = whole.top(1)[0][0]
    words = f"It keeps {label} with {len(stay)} of its 24 heads."
    assert plain(heads.inner_text(".worth .found")) == words
    heads.locator(".undo-heads").click()
    wait_until(heads, lambda: silent(heads) == [])
