"""Makes the pictures of the page again, in about half a minute: ``python -m scripts.screenshot``.

Each holds a digest of the page's texts and styles, and ``tests/test_pictures.py`` says which are out of date. Needs
Playwright and a Chromium.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from benchmarks.chromium import find_chromium

ROOT = Path(__file__).resolve().parent.parent
KEY = "page-digest"
"""The name under which a PNG holds the digest; a JPEG has it as its comment."""

PICTURES = {
    "docs/images/page.png": (1440, 980),  # of the README and the Space's thumbnail
    "vit_demo/web/frontend/preview.jpg": (1200, 630),  # of links to the page
}
"""Each picture with its size: the page as it opens, with two squares rubbed out."""

JPEG_QUALITY = 80

STYLES = ("*.css", "*.html")
COLOURS = ("vit_demo/web/frontend/constants.py", "vit_demo/render/colours.py")
TEXTS = "vit_demo/web/languages/de.json"
"""Its keys are all English texts of the page, as a test checks."""


def page_digest(root: Path = ROOT) -> str:
    """A digest of the page's texts, styles and colours, from the files of a working tree; spaces do not count."""
    frontend = root / "vit_demo" / "web" / "frontend"
    files = sorted(path for pattern in STYLES for path in frontend.rglob(pattern))
    parts = [json.dumps(sorted(json.loads((root / TEXTS).read_text(encoding="utf-8"))))]
    for path in [*files, *(root / name for name in COLOURS)]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        parts += [path.relative_to(root).as_posix(), re.sub(r"\s+", "", text)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def digest_of(picture: Path) -> str:
    """The digest that a picture was saved with; empty if it has none."""
    with Image.open(picture) as image:
        found = image.info.get(KEY, image.info.get("comment", ""))
    return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)


def save(screenshot: bytes, path: Path, digest: str) -> None:
    """Writes a screenshot with its digest, in the format of the path."""
    image = Image.open(io.BytesIO(screenshot)).convert("RGB")
    if path.suffix == ".png":
        info = PngInfo()
        info.add_text(KEY, digest)
        image.save(path, optimize=True, pnginfo=info)
    else:
        image.save(path, quality=JPEG_QUALITY, optimize=True, comment=digest.encode())


def main() -> None:
    """Starts the page on a free port, and writes every picture of it."""
    from playwright.sync_api import sync_playwright

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    environment = {**os.environ, "GRADIO_SERVER_PORT": url.rpartition(":")[2], "GRADIO_ANALYTICS_ENABLED": "False"}
    app = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_for(f"{url}/healthz", app)
        with sync_playwright() as playwright:
            flags = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=flags)
            for name, (width, height) in PICTURES.items():
                size = {"width": width, "height": height}
                page = browser.new_page(viewport=size, color_scheme="light", locale="en-GB", reduced_motion="reduce")
                page.goto(f"{url}/?__theme=light#patch_size=7&digit=8&removed=6,10")
                page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
                page.wait_for_timeout(1500)  # fonts, and what is painted after the first result
                save(page.screenshot(), ROOT / name, page_digest())
                page.close()
                print(name)
            browser.close()
    finally:
        app.terminate()
        app.wait()


def _wait_for(url: str, app: subprocess.Popen[bytes], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and app.poll() is None:
        try:
            with urlopen(url, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"{url} did not answer.")


if __name__ == "__main__":
    main()
