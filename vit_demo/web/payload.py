"""An Exploration as the numbers that the stage draws from: sent once, then no choice on the page costs a request."""

from __future__ import annotations

import base64
import io
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo import methods
from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.web.requests import ResultRequest

_runs = count(1)

ALL_BLOCKS_BYTES = 192 << 10
"""Up to this weight the q and k of all blocks are sent; beyond it the last block's, and others when asked for."""


def payload(result: Exploration, request: ResultRequest) -> dict[str, Any]:
    """Everything the stage shows of a result; the fields are described at ``Stage``.

    Args:
        result: The result.
        request: What it was computed for.
    """
    preset = result.preset
    trace = result.trace
    weight = 4 * sum(q.numel() for q in trace.q)  # q and k, two bytes a number
    first = 0 if weight <= ALL_BLOCKS_BYTES else trace.num_blocks - 1
    summary, rollout = result.attention_maps(), result.rollout()
    peaks = summary.max((2, 3))
    return {
        "run": next_run(),
        "source": source_of(result, request),
        "title": preset.title,
        "image": _data_url(result.image),
        "size": list(result.image.size),
        "pixelated": preset.task == "digits",
        "photo": _photo(result),
        "grid": list(result.grid),
        "prefix": trace.num_prefix,
        "class_token": preset.config.class_token,
        "blocks": trace.num_blocks,
        "heads": trace.num_heads,
        "dropped": [row * result.grid[1] + col for row, col in result.dropped],
        "top": _top(result),
        "note": _note(result),
        "summary": {"map": encode(_quantised(summary, peaks)), "peak": encode(peaks)},
        "rollout": {"map": encode(_quantised(rollout, rollout.max())), "peak": float(rollout.max())},
        "trace": {str(block): block_payload(result, block) for block in range(first, trace.num_blocks)},
        "milliseconds": 1000 * result.seconds,
        "device": result.device,
    }


def next_run() -> str:
    """A number that no other result on a page has had: the page redraws only what has changed."""
    return str(next(_runs))


def source_of(result: Exploration, request: ResultRequest) -> dict[str, Any]:
    """What the page sends back when it asks about this result; see ``ResultRequest``.

    A digit travels as the 28 x 28 pixels that the model saw, a photo as the path of its upload, which only its sender
    knows.
    """
    columns = result.grid[1]
    picture = {"digit": _data_url(result.image)} if result.photo is None else {"upload": request.source.reference}
    return {
        **picture,
        "preset": request.name,
        "patch_size": result.patch_size,
        "fit": result.fit,
        "dropped": [row * columns + col for row, col in result.dropped],
    }


def block_payload(result: Exploration, block: int) -> dict[str, str]:
    """One block's queries (already scaled) and keys as float16, and each row's log-normaliser as float32.

    Raises:
        InputError: If there is no such block.
    """
    trace = result.trace
    if not 0 <= block < trace.num_blocks:
        raise InputError(f"There is no block {block}: this model has {trace.num_blocks}, counted from 0.")
    q, k = trace.q[block].float(), trace.k[block].float()  # [1, H, N, d]
    # A softmax does not notice what all keys have in common; without it half precision has less to round.
    k = (k - k.mean(2, keepdim=True)).half()
    scale = q.shape[-1] ** 0.5
    q = (q / scale).half()
    # From the rounded numbers that the browser gets, so that its rows sum to 1.
    lse = methods.log_normalisers(q.float() * scale, k)
    return {name: encode(tensor[0].cpu().numpy()) for name, tensor in {"q": q, "k": k, "lse": lse}.items()}


def empty(message: str) -> dict[str, Any]:
    """What the stage shows when there is nothing to explain yet."""
    return {"empty": True, "message": message}


def _top(result: Exploration) -> list[dict[str, Any]]:
    """The likeliest classes: index, label, probability."""
    probabilities = result.probabilities
    order = np.argsort(-probabilities, kind="stable")[:5]
    return [{"index": int(i), "label": result.labels[i], "probability": float(probabilities[i])} for i in order]


def _note(result: Exploration) -> str:
    if result.is_sure or not result.labels:
        return ""
    if result.preset.task == "digits":
        return "It is not sure: this may not be one digit, or not one like those it learned from."
    return f"It is not sure: it only knows {len(result.labels)} things, and this may be none of them."


def _photo(result: Exploration) -> dict[str, Any] | None:
    """The whole photo and the part of it that the model saw: left, top, right, bottom as shares of its sides."""
    if result.photo is None:
        return None
    width, height = result.geometry.source_size
    left, top, right, bottom = result.geometry.box
    return {
        "image": _data_url(result.photo),
        "box": [left / width, top / height, right / width, bottom / height],
        "fit": result.geometry.mode,
    }


def _quantised(maps: NDArray[np.float32], peaks: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Maps ``[..., rows, cols]`` as shares of their peaks ``[...]``, in 255 steps."""
    shares = maps / np.maximum(peaks, np.finfo(np.float32).tiny)[..., None, None]
    return (255 * shares).round().astype(np.uint8)


def encode(array: NDArray[Any]) -> str:
    """An array as base64 of its little-endian bytes, row by row."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


def _data_url(image: Image.Image) -> str:
    kind, options = ("png", {}) if image.mode == "L" else ("webp", {"quality": 85})
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
