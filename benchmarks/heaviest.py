"""The heaviest lawful request of every kind, every endpoint and every route: what ``flood`` sends, and tests check.

``tests/web/test_heaviest.py`` fails for a kind, an endpoint or a route without a row, so that none comes without its
attack. No two requests of a row are equal, so that no result is in a cache.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import gradio
import httpx
import numpy as np
from PIL import Image

from vit_demo.defaults import MAX_LABEL, MAX_TAUGHT_CLASSES, MAX_TAUGHT_PICTURES
from vit_demo.images.reading import MAX_DRAWING_SIDE, MAX_FRAME_SIDES
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.frontend import modules
from vit_demo.web.guard.headers import LARGE_ASSET
from vit_demo.web.requests.payload import data_url
from vit_demo.weights import PRESETS
from vit_demo.weights.taught_heads import taught_preset, to_link

TEMPLATES = Path(gradio.__file__).parent / "templates" / "frontend"
SLOW = "local_surrogate"
"""The method of most passes."""
Send = Callable[[httpx.AsyncClient, int], Awaitable[httpx.Response]]
Fields = dict[str, Any]


@cache
def slow_jpeg() -> bytes:
    """A progressive JPEG of noise, which takes long to decode for its size."""
    noise = np.random.default_rng(0).integers(0, 256, (900, 900), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(noise).resize((2800, 2800)).save(file, "JPEG", progressive=True, quality=20)
    return file.getvalue()


@cache
def slow_frame() -> bytes:
    """A frame of a camera of as many pixels as are accepted, and nearly as many bytes."""
    noise = np.random.default_rng(0).integers(0, 256, MAX_FRAME_SIDES, dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(noise).convert("RGB").save(file, "JPEG", progressive=True, quality=60)
    return file.getvalue()


@cache
def large_drawing() -> bytes:
    """A drawing of as many pixels as are accepted."""
    lines = np.full((MAX_DRAWING_SIDE, MAX_DRAWING_SIDE), 255, np.uint8)
    lines[::9, :500] = 0
    return base64.b64decode(data_url(Image.fromarray(lines).convert("RGB"), lossless=True).partition(",")[2])


@cache
def _digit(number: int) -> bytes:
    turned = example_picture(number % 10).rotate(number % 7 - 3, fillcolor=255)
    return base64.b64decode(data_url(turned, lossless=True).partition(",")[2])


def drawn(n: int, file: bytes | None = None) -> str:
    """A drawing as a data URL: a digit, or a file, with bytes after its end that make it another."""
    return f"data:image/png;base64,{base64.b64encode((file or _digit(n % 100)) + b'%08d' % n).decode()}"


def source(n: int, file: bytes | None = None) -> Fields:
    """A drawing in the network and patches that take longest."""
    return {"drawing": drawn(n, file), "preset": "digits-small", "patch_size": 2, "fit": "crop", "dropped": [n % 196],
            "silent": [[n % 6, 0]]}  # fmt: skip


def about(**fields: Any) -> Callable[[int], Fields]:
    """A request about a drawing."""
    return lambda n: {"source": source(n), **fields}


@cache
def _link() -> str:
    base, count = PRESETS["digits-small"], MAX_TAUGHT_CLASSES
    labels = tuple(str(index) * MAX_LABEL for index in range(count))
    head = np.random.default_rng(0).normal(size=(count, base.config.num_features + 1)).astype(np.float32)
    return to_link(taught_preset(base, 2, labels, head))


def _training(n: int) -> Fields:
    config = {"image_size": 28, "patch_size": 4, "in_channels": 1, "num_classes": 10, "embed_dim": 64, "depth": 5,
              "num_heads": 4, "mlp_ratio": 4.0}  # fmt: skip
    begin = {"config": config, "seed": n, "steps": 6000}
    return {"begin": begin, "source": {"drawing": drawn(n)}}


def _lesson(n: int) -> Fields:
    each = MAX_TAUGHT_PICTURES // MAX_TAUGHT_CLASSES
    classes = [
        {"name": f"{index} of {n}", "examples": [{"drawing": drawn(n * 60 + index * each + k)} for k in range(each)]}
        for index in range(MAX_TAUGHT_CLASSES)
    ]
    return {"preset": "digits-small", "patch_size": 2, "fit": "crop", "classes": classes}


def filmed(n: int) -> Fields:
    """A live request about a frame."""
    frame = f"data:image/jpeg;base64,{base64.b64encode(slow_frame() + b'%08d' % n).decode()}"
    return {"frame": frame, "preset": "photos-tiny", "patch_size": 10, "fit": "crop", "dropped": [n % 100]}


LIVE: dict[str, Callable[[int], Fields]] = {"live photos": filmed, "live digits": source}
"""The sources of the heaviest live requests, by the pool in which they are computed."""


KINDS: dict[str, Callable[[int], Fields]] = {
    "result": lambda n: {"source": source(n, large_drawing())},
    "map": about(method=SLOW, label=3, against=4),
    "block": about(block=5),
    "attention_maps": about(query=0),
    "logit_lens": about(),
    "film": about(query=7),
    "tokens": lambda n: {"source": source(n), "block": 5, "other": {"drawing": drawn(n + 50_000_000)}},
    "input": about(),
    "steps": about(),
    "steps_patch": about(query=7),
    "steps_block": about(query=7, block=5, head=3),
    "faithfulness": about(method=SLOW, label=3, against=4, baseline="blur"),
    "random_order": about(order=1, label=3, against=4, baseline="blur"),
    "randomization": about(method="integrated_gradients", label=3),
    "smallest_set": lambda n: {"source": source(n) | {"patch_size": 7, "dropped": []}, "wanted": "needed"},
    "head_effects": about(label=3, against=4),
    "fewest_heads": about(),
    "contributions": about(label=3, against=4),
    "method_docs": lambda n: {"method": "libra_fullgrad"},
    "models": lambda n: {},
    "model": lambda n: {"name": "taught-" + "x" * 22, "taught": _link()},
    "network": lambda n: {"config": {"image_size": 224, "patch_size": 16, "depth": 1 + n % 999}, "patch_size": 2},
    "train": _training,
    "teach": _lesson,
}
"""The fields of the heaviest request of each of ``requests.kinds.KINDS``, by its number."""

_PICTURE: Fields = {"preset": "digits-small", "patch_size": 2}
ENDPOINTS: dict[str, Fields] = {
    "presets": {},
    "labels": {"preset": "photos-tiny"},
    "methods": {},
    "predict": _PICTURE,
    "explain": _PICTURE | {"method": SLOW, "label": "3", "against": "4"},
    "overlay": _PICTURE | {"method": SLOW, "label": "3", "against": "4"},
    "explain_image": _PICTURE | {"method": SLOW, "label": "3"},
    "logit_lens": _PICTURE | {"patches": True},
    "drop_patches": _PICTURE | {"patches": [[row, col] for row in range(14) for col in range(0, 14, 2)]},
    "head_effects": _PICTURE | {"label": "3", "against": "4", "silent": "0.0,5.3"},
    "faithfulness": _PICTURE | {"method": SLOW, "label": "3", "against": "4"},
    "similarity": _PICTURE | {"block": 5, "row": 3, "col": 3},
    "pca": _PICTURE | {"block": 5, "remove_background": True},
    "kmeans": _PICTURE | {"block": 5, "k": 12},
    "norms": _PICTURE | {"block": 5},
}
"""The arguments of the heaviest call of each endpoint, beside a picture and, where it takes one, another."""
WITH_OTHER = ("similarity", "pca")

REQUEST, JOIN = "/gradio_api/vit_demo/request", "/gradio_api/queue/join"
LIVE_ROUTE = "/gradio_api/vit_demo/live"


async def post(path: str, body: Callable[[int], Any], client: httpx.AsyncClient, n: int) -> httpx.Response:
    """Sends JSON, given as text or as what it says."""
    sent = body(n)
    text = sent if isinstance(sent, str) else json.dumps(sent)
    return await client.post(path, content=text, headers={"content-type": "application/json"})


async def live(pool: str, client: httpx.AsyncClient, n: int) -> httpx.Response:
    """Sends a live request for one of a few pages."""
    return await post(
        LIVE_ROUTE, lambda n: {"kind": "result", "live": f"page {n % 7}", "source": LIVE[pool](n)}, client, n
    )


async def get(path: str, client: httpx.AsyncClient, n: int) -> httpx.Response:
    """Asks for a path, in which ``{n}`` is the number."""
    return await client.get(path.format(n=n))


async def call(name: str, client: httpx.AsyncClient, n: int) -> httpx.Response:
    """Calls an endpoint, and collects its result."""
    arguments = dict(ENDPOINTS[name])
    if "patch_size" in arguments:
        arguments["image"] = drawn(n)
    if name in WITH_OTHER:
        arguments["other"] = drawn(n + 50_000_000)
    begun = await client.post(f"/gradio_api/call/v2/{name}", json=arguments)
    return begun if begun.is_error else await client.get(f"/gradio_api/call/{name}/{begun.json()['event_id']}")


async def upload(file: bytes, client: httpx.AsyncClient, _: int) -> httpx.Response:
    """Uploads a photo that no other is equal to, and requests its result."""
    sent = await client.post("/gradio_api/vit_demo/photo", content=file + secrets.token_bytes(8))
    if sent.is_error:
        return sent
    wanted = {"upload": sent.json()["path"], "preset": "photos-tiny", "patch_size": 10, "fit": "crop"}
    return await client.post(REQUEST, json={"kind": "result", "source": wanted})


async def _uploaded(client: httpx.AsyncClient, _: int) -> httpx.Response:
    return await client.post("/gradio_api/upload", files={"files": ("a.jpg", slow_jpeg() + secrets.token_bytes(8))})


async def _file(client: httpx.AsyncClient, n: int) -> httpx.Response:
    sent = await _uploaded(client, n)
    return sent if sent.is_error else await client.get(f"/gradio_api/file={sent.json()[0]}")


async def _stream(path: str, client: httpx.AsyncClient, n: int) -> httpx.Response:
    """Opens a stream that never ends, and leaves it when it has begun."""
    async with client.stream("GET", path.format(n=n)) as response:
        return httpx.Response(response.status_code)


async def _queued(client: httpx.AsyncClient, n: int) -> httpx.Response:
    """Begins an event, and collects its result."""
    session = secrets.token_hex(8)
    body = {"data": [], "fn_index": 0, "session_hash": session, "trigger_id": None}
    begun = await client.post(JOIN, json=body)
    return begun if begun.is_error else await client.get(f"/gradio_api/queue/data?session_hash={session}")


def _tool(n: int) -> Fields:
    arguments = ENDPOINTS["explain"] | {"image": drawn(n)}
    return {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "explain", "arguments": arguments}}


def _closed(method: str, path: str) -> Send:
    return lambda client, n: client.request(method, path)


def large_scripts() -> list[str]:
    """The names of Gradio's largest scripts that the page may load."""
    files = [file for file in (TEMPLATES / "assets").glob("*.js") if not LARGE_ASSET.match(f"/assets/{file.name}")]
    return [file.name for file in sorted(files, key=lambda file: -file.stat().st_size)[:9]]


_STROKES = base64.urlsafe_b64encode(b" " + bytes([198]) + 196 * b"abc").decode()[:-1]
"""A stroke of 198 points without the last two, for which the number stands."""

READ = (
    *("/", "/config", "/config/", "/theme.css", "/gradio_api/theme.css", "/robots.txt", "/favicon.ico", "/healthz"),
    *("/readyz", "/metrics", "/api", "/openapi.json", "/gradio_api/openapi.json", "/gradio_api/info"),
    *("/gradio_api/info/", "/gradio_api/app_id", "/gradio_api/app_id/", "/gradio_api/startup-events"),
    *("/gradio_api/mcp/schema", "/lessons", "/lessons/13", "/faithfulness", f"/assets/{large_scripts()[0]}"),
    *("/static/img/logo.svg", f"{modules.PREFIX}/icon.svg", f"{modules.PREFIX}/preview.jpg"),
    f"{modules.PREFIX}/examples/preview/{next(iter(EXAMPLE_PHOTOS))}.webp",
    *(f"{modules.PREFIX}/see/{name}" for name in ("digit-8", f"{next(iter(EXAMPLE_PHOTOS))}.jpg")),
    f"{modules.PREFIX}/see/strokes-{_STROKES}{{n:08}}.jpg",
    *(f"{modules.PREFIX}/{modules.version()}/{name}" for name in modules.files()),
)
"""What is read by its address alone."""

ROUTES: dict[str, Send] = {
    **{f"GET {path}": partial(get, path) for path in READ},
    "GET /gradio_api/file={path_or_url}": _file,
    "GET /gradio_api/file/{path}": _file,
    "GET /gradio_api/heartbeat/{session_hash}": partial(_stream, "/gradio_api/heartbeat/s{n}"),
    "GET /gradio_api/queue/data": _queued,
    "GET /gradio_api/call/{api_name}/{event_id}": partial(call, "faithfulness"),
    "GET /gradio_api/call/v2/{api_name}/{event_id}": partial(call, "faithfulness"),
    "GET /gradio_api/mcp/": lambda client, n: client.get("/gradio_api/mcp/", headers={"accept": "text/html"}),
    "POST /gradio_api/upload": _uploaded,
    "POST /gradio_api/vit_demo/photo": partial(upload, slow_jpeg()),
    "POST /gradio_api/vit_demo/request": partial(post, REQUEST, lambda n: {"kind": "map"} | KINDS["map"](n)),
    **{f"POST {LIVE_ROUTE} {pool}": partial(live, pool) for pool in LIVE},
    "POST /gradio_api/queue/join": _queued,
    "POST /gradio_api/cancel": partial(
        post, "/gradio_api/cancel", lambda n: {"session_hash": f"s{n}", "fn_index": 0, "event_id": f"e{n}"}
    ),
    "POST /gradio_api/reset": partial(post, "/gradio_api/reset", lambda n: {"event_id": f"e{n}"}),
    "POST /gradio_api/call/{api_name}": partial(
        post, "/gradio_api/call/predict", lambda n: {"data": [drawn(n), "digits-small", 2]}
    ),
    "POST /gradio_api/call/v2/{api_name}": partial(call, "explain"),
    "POST /gradio_api/mcp/": partial(post, "/gradio_api/mcp/", _tool),
    "DELETE /gradio_api/mcp/": _closed("DELETE", "/gradio_api/mcp/"),
    "anything that is closed": _closed("GET", "/nothing"),
}
"""What to send to each route that ``headers.OPEN_ROUTES`` lets pass."""


def rows() -> Mapping[str, Send]:
    """All of them, by a name each."""

    def kind(name: str) -> Send:
        return partial(post, REQUEST, lambda n: {"kind": name} | KINDS[name](n))

    return (
        {f"kind {name}": kind(name) for name in KINDS}
        | {f"endpoint {name}": partial(call, name) for name in ENDPOINTS}
        | ROUTES
    )
