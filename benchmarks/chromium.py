"""The Chromium that benchmarks, screenshots and tests of the page run in."""

import shutil
from pathlib import Path
from typing import Any


def find_chromium(playwright: Any) -> str | None:
    """The path of a browser; None if there is none.

    First the system's headless shell, Chromium without the parts for a screen, which opens the page in half the time;
    then Playwright's own; then another of the system.
    """
    own = playwright.chromium.executable_path
    shell, *others = map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, (shell, own if Path(own).exists() else None, *others)), None)
