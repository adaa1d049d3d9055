"""The site of ``vit_demo.gallery``, opened from a disk: from the index to a map, and on to another patch size."""

from pathlib import Path

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture

from .choosing import Page, middle_of
from .test_browser_notebook import MAP, near


def test_from_the_index_to_a_patch_and_to_another_size(page: Page, tmp_path: Path) -> None:
    results = [vit_demo.explore(example_picture(7), "digits-tiny", patch_size=size) for size in (4, 7)]
    index = vit_demo.gallery({"seven.png": results}, tmp_path / "site")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(index.as_uri())
    assert page.locator("img").evaluate_all("all => all.every((one) => one.complete && one.naturalWidth > 0)")
    page.get_by_role("link", name="4 px").click()
    for result in results:
        page.wait_for_selector(".predictions .first")
        page.wait_for_function("() => document.querySelector('.stage').__stage.scene()?.map")
        near(page.main_frame, result.attention())
        page.mouse.click(*middle_of(page.locator(".picture"), 1, 2, *result.grid))
        near(page.main_frame, result.attention(query=(1, 2)))
        assert len(page.evaluate(MAP)) == result.grid[0] * result.grid[1]
        if result is results[0]:
            page.get_by_role("link", name="7 px").click()
            page.wait_for_url("**/seven-digits-tiny-7.html")
    page.get_by_role("link", name="All pictures").click()
    page.wait_for_url("**/index.html")
    assert all(url.startswith((tmp_path.as_uri(), "data:")) for url in requests)
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
