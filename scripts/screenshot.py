"""Makes the pictures of the page: the one in the README, and every section on three screens, light and dark.

Usage: ``python scripts/screenshot.py [docs/images]``
"""

import io
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SIZE = {"width": 1440, "height": 980}
SCREENS = {"desktop": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
SECTIONS = {
    "attention": "tab=digits&digit=7",
    "photo": "tab=photos&photo=lion&method=relevance",
    "features": "tab=photos&photo=lion&section=features",
    "steps": "tab=digits&digit=7&section=steps",
    "compare": "tab=photos&photo=lion&section=compare",
    "build": "tab=digits&digit=7&section=build",
}
"""The pictures of the sections, each by its link."""
QUALITY, SCALE = 70, 0.6
"""Quality of the WebP files, and their scale."""


def main() -> None:
    """Writes the pictures to the folder given, ``docs/images`` by default."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    app = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/healthz")
        with sync_playwright() as playwright:
            own = Path(playwright.chromium.executable_path)
            path = str(own) if own.exists() else shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            page.goto(f"{url}/?__theme=light")
            page.wait_for_selector('.stage[data-ready="true"]')
            page.wait_for_timeout(1500)
            page.screenshot(path=folder / "page.png")
            for screen, (width, height) in SCREENS.items():
                for theme in ("light", "dark"):
                    _take_sections(browser, url, folder, f"{screen}-{theme}", theme, width, height)
            browser.close()
    finally:
        app.terminate()
    print(folder)


def _take_sections(browser: Browser, url: str, folder: Path, suffix: str, theme: str, width: int, height: int) -> None:
    for name, link in SECTIONS.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(f"{url}/?__theme={theme}#{link}")
        page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
        page.wait_for_timeout(2500)  # maps and tokens that are requested
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        size = round(picture.width * SCALE), round(picture.height * SCALE)
        small = picture.resize(size, Image.Resampling.LANCZOS)
        small.save(folder / f"{name}-{suffix}.webp", quality=QUALITY)
        page.close()


def _wait_for(url: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urlopen(url, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"{url} did not answer within {seconds:.0f} seconds.")


if __name__ == "__main__":
    main()
