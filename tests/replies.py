"""Requests of the page in tests: sent once, with the reply unpacked, or after the server forgot its replies."""

import base64
import gzip
import json
from typing import Any

import httpx
import numpy as np
import pytest

import vit_demo
from vit_demo.inference.cache import ByteCache
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.requests import poll

from .asynchronous import PATIENCE, run


def unpack(body: bytes) -> dict[str, Any]:
    """Gives the reply in a body, by another library than the one that made it."""
    return json.loads(gzip.decompress(body))


def handle(request: Any) -> dict[str, Any]:
    """Gives the reply to a request: its result, an error, or the progress of its job."""
    return unpack(run(poll.handle(request)))


def complete(request: Any) -> dict[str, Any]:
    """Sends a request until its result is there, as the page does."""
    for _ in range(5000):
        if "done" not in (reply := handle(request)):
            return reply
    raise AssertionError("no result")


def send(source: Any, kind: str, **details: Any) -> dict[str, Any]:
    """Gives the result of a request about a source."""
    return complete({"kind": kind, "source": source, **details})["result"]


def forget(cache: ByteCache[Any]) -> None:
    """Empties a cache."""
    with cache._lock:
        cache._entries.clear()
        cache._sizes.clear()


def check_teaching(address: str, headers: dict[str, str] | None = None) -> None:
    """A server teaches a network of photos, and explains another photo with it, as the package does."""
    classes = {"cats": ["cat", "tiger"], "places": ["church", "mountains"]}
    choices = {"preset": "photos-tiny", "patch_size": 12, "fit": "crop"}
    with httpx.Client(base_url=address, headers=headers, timeout=PATIENCE) as client:

        def result_of(request: dict[str, Any]) -> dict[str, Any]:
            while "done" in (reply := client.post("/gradio_api/vit_demo/request", json=request).json()):
                pass
            return reply["result"]

        boxes = [{"name": name, "examples": [{"example": one} for one in photos]} for name, photos in classes.items()]
        taught = result_of({"kind": "teach", **choices, "classes": boxes})["model"]["name"]
        found = result_of({"kind": "result", "source": {"example": "lion", **choices, "preset": taught}})["predictions"]
    own = vit_demo.teach(
        {name: [EXAMPLE_PHOTOS[one].path for one in photos] for name, photos in classes.items()}, "photos-tiny"
    )
    expected = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, own).top(2)
    assert found["labels"] == [label for label, _ in expected] and found["labels"][0] == "cats"
    probabilities = np.frombuffer(base64.b64decode(found["probabilities"]), "<f4")
    assert probabilities == pytest.approx([value for _, value in expected], abs=0.002), "but for half precision"
