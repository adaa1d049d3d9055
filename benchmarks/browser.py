"""The browser that the benchmarks of the page drive."""

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Playwright


def start_browser(playwright: Playwright) -> Browser:
    """Starts Playwright's own headless Chromium, or else the system's."""
    bundled = Path(playwright.chromium.executable_path)
    path = str(bundled) if bundled.exists() else shutil.which("chromium") or shutil.which("chromium-headless-shell")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    return playwright.chromium.launch(executable_path=path, args=flags)
