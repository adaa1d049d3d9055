"""Random clicks: whatever a visitor does, and however late replies come, the page ends up showing one thing.

`VIT_DEMO_CLICK_SEQUENCES` is the number of sequences of 30 clicks; by default few, to be quick.
"""

import os
import random
from typing import Any

import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.weights import PRESETS

from .choosing import Page, settle_address, wait_a_moment

SEQUENCES = int(os.environ.get("VIT_DEMO_CLICK_SEQUENCES", "3"))
CLICKS = 30
DELAYS = (0, 50, 150)  # milliseconds, for each reply in turn

CLICKABLE = """() => [...document.querySelectorAll(
  "[role=tab], .example, #photos button, #patch-size input, #fit input, .remove, [data-action], #header [data-section],"
  + "[data-show], [data-mode], [data-block], .bars button"
)].filter((e) => e.offsetParent && !e.disabled)"""

CLICK = f"""(number) => {{
  const all = ({CLICKABLE})();
  const select = document.querySelector("#preset");
  const models = [...select.options].filter((option) => PLAIN.includes(option.value));
  const chosen = number % (all.length + models.length);
  if (chosen < all.length) all[chosen].click();
  else {{
    select.value = models[chosen - all.length].value;
    select.dispatchEvent(new Event("change"));
  }}
}}""".replace("PLAIN", str([name for name, preset in PRESETS.items() if preset.is_bundled]))

SHOWN = """() => {
  const stage = document.querySelector(".stage");
  const result = stage.__stage.current();
  return {
    ready: stage.dataset.ready,
    top: stage.dataset.top1,
    bar: document.querySelector(".bars .first .label")?.innerText ?? "",
    source: result?.source,
    grid: result && [result.rows, result.columns],
    tab: document.querySelector("[role=tab][aria-selected=true]").id.replace("tab-", ""),
    panel: [...document.querySelectorAll("[role=tabpanel]")].filter((e) => !e.hidden).map((e) => e.id),
    model: document.querySelector("#preset").value,
    size: Number(document.querySelector("#patch-size :checked").value),
    fit: document.querySelector("#fit :checked").value,
    costs: document.querySelector(".costs").textContent,
    pressed: document.querySelector("#photos [aria-pressed=true] img")?.alt ?? null,
    part: document.querySelector(".seen-part").textContent !== "",
    problem: document.querySelector(".result-status:not([hidden])")?.innerText ?? "",
    hash: Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
    method: stage.__stage.choices.method,
  };
}"""


def delay_replies(page: Page, milliseconds: int) -> None:
    """Each reply of the server reaches the page that much later."""
    page.evaluate(
        """(milliseconds) => {
            const plain = window.fetch;
            window.fetch = async (...request) => {
                const reply = await plain(...request);
                await new Promise((resolve) => setTimeout(resolve, milliseconds));
                return reply;
            };
        }""",
        milliseconds,
    )


def settled(page: Page) -> dict[str, Any]:
    """What is shown once the newest result is there and drawn, and the address is written."""
    page.wait_for_selector('.stage[data-state="done"]')
    wait_a_moment(page)
    settle_address(page)
    page.wait_for_selector('.stage[data-state="done"]')
    return page.evaluate(SHOWN)


FIRST = {"digits": {"digit": "8", "patch_size": "7"}, "photos": {"photo": "lion"}}
START = {"digits": {"digit": "7"}, "photos": {"photo": "lion"}}
"""What an empty address means, and what a link leaves out."""


def check(found: dict[str, Any]) -> None:
    """Picture, prediction, grid, radios, menu, texts and address say the same."""
    tab, preset = found["tab"], PRESETS[found["model"]]
    assert found["panel"] == [f"panel-{tab}"] and preset.task == tab and found["problem"] == ""
    assert found["size"] in preset.patch_sizes
    link = (START if found["hash"] else FIRST)[tab] | found["hash"]  # which holds what differs from the start
    assert (link.get("tab", "digits"), link.get("model", preset.name)) == (tab, preset.name)
    assert int(link.get("patch_size", preset.default_patch_size)) == found["size"]
    side = preset.image_size // found["size"]
    rows, columns = found["grid"] if found["fit"] == "keep" and found["ready"] == "true" else (side, side)
    if found["ready"] == "empty":
        assert found["hash"]["picture"] == "none" and not found["bar"] and not found["part"] and not found["costs"]
        return
    source = found["source"]
    assert found["ready"] == "true" and found["top"] == found["bar"]
    assert f"Tokens{rows * columns + preset.config.num_prefix_tokens}" in found["costs"].replace(",", "")
    assert (source["preset"], source["patch_size"]) == (preset.name, found["size"])
    if tab == "digits":
        expected = vit_demo.explore(example_picture(int(link["digit"])), preset.name, patch_size=found["size"])
        assert not found["part"] and source["digit"]
    else:
        photo = EXAMPLE_PHOTOS[link["photo"]]
        expected = vit_demo.explore(photo.path, preset.name, patch_size=found["size"], fit=found["fit"])
        assert found["part"] and found["pressed"] == photo.title
        assert source["example"] == photo.name and source["fit"] == found["fit"] == found["hash"].get("fit", "crop")
    assert found["grid"] == list(expected.grid) and found["top"] == expected.top(1)[0][0]
    assert found["method"] == found["hash"].get("method", "attention")


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_after_random_clicks_the_whole_page_agrees(page: Page, address: str, seed: int):
    choose = random.Random(seed)
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"]')
    page.locator(".example").nth(9).wait_for()
    delay_replies(page, DELAYS[seed % len(DELAYS)])
    for _ in range(CLICKS):
        page.evaluate(CLICK, choose.randrange(10**6))
        page.wait_for_timeout(choose.choice((0, 0, 20, 60, 150, 350)))
    check(settled(page))
    if seed % 5 == 0:  # the way back is as consistent
        for _ in range(4):
            page.go_back()
            page.wait_for_timeout(choose.choice((0, 30, 200)))
        check(settled(page))
