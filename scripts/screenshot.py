"""Makes the picture in the README: starts the app, opens it in a headless browser, draws nothing, takes the picture.

Usage: ``python scripts/screenshot.py [docs/images/page.png]``
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SIZE = {"width": 1440, "height": 980}


def main() -> None:
    """Writes the picture to the path given, ``docs/images/page.png`` by default."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images" / "page.png"
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
            page.screenshot(path=target)
            browser.close()
    finally:
        app.terminate()
    print(target)


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
