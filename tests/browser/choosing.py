"""How tests choose an explanation method on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def method_button(page: Page, name: str) -> Locator:
    """The radio button of a method in the list of all methods, which is opened if it is not."""
    more = page.locator(".more-methods")
    if more.get_attribute("aria-expanded") == "false":
        more.click()
    return page.locator(".all").get_by_role("radio", name=name)
