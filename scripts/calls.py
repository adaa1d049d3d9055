"""Prints which functions of the package a stroke and a click on a class run on the server, in the order of their calls.

    python -m scripts.calls

`docs/architecture.md` follows both by name; a test compares its tables with what is printed here.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

import vit_demo
from vit_demo.service.engine import get_engine
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.menu import default_photo_preset
from vit_demo.web.requests.payload import data_url
from vit_demo.web.server import asgi_app

PACKAGE = Path(vit_demo.__file__).parent

_calls: list[str] | None = None


def _note(frame: FrameType, event: str, argument: Any) -> None:
    code = frame.f_code
    if event == "call" and _calls is not None and code.co_filename.startswith(str(PACKAGE)):
        _calls.append(f"{Path(code.co_filename).relative_to(PACKAGE).as_posix()} {code.co_qualname}")


@contextmanager
def _counting() -> Iterator[dict[str, None]]:
    """Collects the functions that are called meanwhile, in whatever thread, each once."""
    global _calls
    found: dict[str, None] = {}
    _calls = []
    try:
        yield found
    finally:
        found |= dict.fromkeys(name for name in _calls if "<" not in name)  # no lambdas, no comprehensions
        _calls = None


async def _measure() -> dict[str, list[str]]:
    app = asgi_app()
    get_engine().warm_up(default_photo_preset()).result()  # which would run beside the stroke

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:

        async def send(digit: int, **fields: Any) -> list[str]:
            # Turned a little, because the digit itself may be in a cache.
            picture = example_picture(digit).rotate(3, fillcolor=255)
            model = {"preset": "digits-small", "patch_size": 4, "fit": "crop", "dropped": []}
            with _counting() as found:
                body = {"source": {"drawing": data_url(picture), **model}, **fields}
                (await client.post("/gradio_api/vit_demo/request", json=body)).raise_for_status()
            return list(found)

        stroke = {"kind": "result"}
        click = {"kind": "map", "method": "libra_fullgrad", "label": 7}
        await send(3, **stroke)  # loads the network
        return {"stroke": await send(7, **stroke), "click": await send(7, **click)}


def calls() -> dict[str, list[str]]:
    """The functions, as ``file name``, of a stroke and of a click after it."""
    threading.setprofile(_note)
    sys.setprofile(_note)
    try:
        return asyncio.run(_measure())
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


def main() -> None:
    """Prints them."""
    for what, names in calls().items():
        print(f"{what}: {len(names)} functions of {len({name.split()[0] for name in names})} files")
        print(*(f"  {name}" for name in names), sep="\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the interpreter would abort while it stops the workers, which torch's threads belong to
