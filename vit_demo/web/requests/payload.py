"""An ``Exploration`` as JSON for the stage, which requests the traces of blocks and further maps later."""

from __future__ import annotations

import base64
import io
from itertools import count
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vit_demo.inference.exploration import Exploration
from vit_demo.inference.forward import MOST_EARLY
from vit_demo.inference.sequence import check_block
from vit_demo.methods import logsumexp
from vit_demo.scores import to_scores
from vit_demo.sentences import marked
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.requests.notes import note_of
from vit_demo.weights.costs import num_operations

if TYPE_CHECKING:
    from vit_demo.trace import Trace
    from vit_demo.web.requests.parse import ResultRequest

_runs = count(1)

MAX_CLASSES = 1000  # classes that can be asked about: all of ImageNet-1k, the likeliest of ImageNet-21k

FULL_LEVEL = 65535  # level of a map's peak: half a step is 0.001 % of attention, and the page shows 0.01 %


class SourcePayload(TypedDict):
    """The part that all requests about a result repeat: the picture, in one of the first fields, and its processing."""

    digit: NotRequired[str]
    drawing: NotRequired[str]
    example: NotRequired[str]
    upload: NotRequired[str]
    preset: str
    patch_size: int
    fit: str
    dropped: list[int]
    words: NotRequired[list[str]]
    silent: NotRequired[list[list[int]]]


class MapsPayload(TypedDict):
    """Maps of ``quantized``: base64 of uint16 levels and of float32 peaks."""

    levels: str
    peaks: str


class TracePayload(TypedDict):
    """A block of ``block_payload``: base64 of float16, float16 and float32."""

    q: str
    k: str
    logsumexp: str


class PredictionsPayload(TypedDict):
    """Classes, most likely first: base64 of uint16 indices and of float32 probabilities, and their names.

    ``scores`` is ``"softmax"``, ``"sigmoid"``, or ``"none"`` if the probabilities are logits.
    """

    indices: str
    probabilities: str
    scores: str
    labels: list[str]


class PhotoPayload(TypedDict):
    """The whole photo, and the part that the model saw: left, top, right, bottom as shares of its sides."""

    image: str
    box: list[float]
    fit: str


class ResultPayload(TypedDict):
    """A result on the stage. Arrays are base64 of little-endian bytes, pictures are data URLs.

    ``run`` is unique. ``image`` is what the model saw, and ``size`` its width and height. ``pixelated`` is true for a
    drawing, which has no ``photo``. ``pool`` is that of ``ViTConfig``, or ``"attention"``. ``trace_bytes``, the size of
    a block's trace, decides whether the page requests it in advance; only a notebook gets ``trace``, for some or all
    blocks, without tokens for the ``dropped`` patches. ``predictions`` are empty without a classifier head.
    ``attention_maps`` ``[L, H, N]`` are those of the class token. ``box``: the square of a drawing's picture, or of a
    photo of a digit, that ``image`` shows: its upper row, its left column and its side in parts of the picture's longer
    side; it may reach beyond the picture. None of a photo, which has its own. ``early`` ``[L + 1, K]``, float32: the
    probabilities of all classes, in their order, before the first block and after each, for at most ``MOST_EARLY``.
    ``confident`` as ``Exploration.is_confident``, and true of words, of which any may be asked.
    """

    run: str
    source: SourcePayload
    image: str
    size: list[int]
    pixelated: bool
    photo: PhotoPayload | None
    box: list[float] | None
    grid: list[int]
    num_prefix_tokens: int
    class_token: bool
    pool: str
    num_blocks: int
    num_heads: int
    trace_bytes: int
    dropped: list[int]
    silent: list[list[int]]
    predictions: PredictionsPayload
    early: str | None
    confident: bool
    note: str
    attention_maps: MapsPayload
    rollout: MapsPayload
    trace: NotRequired[dict[str, TracePayload]]
    operations: int
    milliseconds: float
    device: str


class EmptyPayload(TypedDict):
    """A message in place of a result."""

    empty: bool
    message: str


def payload(
    result: Exploration, request: ResultRequest | None = None, num_classes: int = MAX_CLASSES, *, live: bool = False
) -> ResultPayload:
    """Everything the stage shows of a result, which answers a ``request`` (see ``source_of``), with so many classes.

    If it is ``live``, only for a moment: the ``MOST_EARLY`` first classes, no rollout or note, and no picture in the
    source nor of a photo, which the page has.
    """
    preset, trace, source = result.preset, result.trace, source_of(result, None if live else request)
    longer, (left, top, right, _) = max(result.geometry.source_size), result.geometry.box
    return {
        "run": str(next(_runs)),
        "source": source,
        "image": source.get("digit") or ("" if live and result.photo else data_url(result.image)),
        "size": list(result.image.size),
        "pixelated": preset.task == "digits",
        "photo": _photo(result, live),
        "box": None if result.photo else [float(each / longer) for each in (top, left, right - left)],
        "grid": list(result.grid),
        "num_prefix_tokens": trace.num_prefix_tokens,
        "class_token": preset.config.class_token,
        "pool": preset.config.pool if trace.pooling is None else "attention",
        "num_blocks": trace.num_blocks,
        "num_heads": trace.num_heads,
        "trace_bytes": _trace_bytes(trace),
        "dropped": [row * result.grid[1] + col for row, col in result.dropped],
        "silent": [list(head) for head in result.intervention.heads],
        "predictions": _predictions(result, MOST_EARLY if live else num_classes),
        "early": None if trace.early is None else encode(to_scores(trace.early[0], preset.scores).cpu().numpy()),
        "confident": preset.takes_words or result.is_confident,
        "note": "" if live else marked(note_of(result)),
        "attention_maps": quantized(result.attention_maps()),
        "rollout": {"levels": "", "peaks": ""} if live else quantized(result.rollout()),
        "operations": num_operations(preset.config, result.patch_size, trace.num_tokens),
        "milliseconds": 1000 * result.seconds,
        "device": result.device,
    }


def source_of(result: Exploration, request: ResultRequest | None = None) -> SourcePayload:
    """The source that every request about this result repeats; see ``ResultRequest``.

    A digit is sent as the 28 x 28 pixels that the model saw, an example photo by its name, and another photo as the
    path of its upload, which only its sender knows. Without a request there is no picture.
    """
    columns = result.grid[1]
    source: SourcePayload = {
        "preset": request.preset if request else result.preset.name,
        "patch_size": result.patch_size,
        "fit": result.fit,
        "dropped": [row * columns + col for row, col in result.dropped],
    }
    if result.intervention.heads:
        source["silent"] = [list(head) for head in result.intervention.heads]
    if request is None:
        return source
    if request.words:
        source["words"] = list(request.words)
    reference = request.source.reference
    if result.photo is None:
        source["digit"] = data_url(result.image)
    elif reference in EXAMPLE_PHOTOS:
        source["example"] = reference
    else:
        source["upload"] = reference
    return source


def block_payload(result: Exploration, block: int) -> TracePayload:
    """The scaled queries and the keys of a block as float16, and each row's log-sum-exp as float32."""
    trace, block = result.trace, check_block(result.trace.num_blocks, block)
    q, k = trace.q[block].float(), trace.k[block].float()  # [1, H, N, d]
    # Subtracting a vector from all keys does not change the softmax; without their mean, half precision rounds less.
    k = (k - k.mean(2, keepdim=True)).half()
    scale = q.shape[-1] ** 0.5
    q = (q / scale).half()
    # From the rounded numbers that the browser gets, so that its rows sum to 1.
    log_sums = logsumexp(q.float() * scale, k)
    return {"q": _encoded(q), "k": _encoded(k), "logsumexp": _encoded(log_sums)}


def _encoded(tensor: Tensor) -> str:
    return encode(tensor[0].cpu().numpy())


def _trace_bytes(trace: Trace) -> int:
    """The bytes of ``block_payload``, before base64: two half-precision numbers of each token, and the log-sum-exp."""
    return 4 * trace.q[0][0].numel() + 4 * trace.q[0][0, ..., 0].numel()


def empty(message: str) -> EmptyPayload:
    """A message for the stage in place of a result."""
    return {"empty": True, "message": message}


def _predictions(result: Exploration, count: int) -> PredictionsPayload:
    probabilities = result.probabilities
    order = np.argsort(-probabilities, kind="stable")[:count]
    return {
        "indices": encode(order.astype(np.uint16)),
        "probabilities": encode(probabilities[order]),
        "scores": result.preset.scores,
        "labels": [result.labels[i] for i in order],
    }


def _photo(result: Exploration, live: bool) -> PhotoPayload | None:
    if result.photo is None:
        return None
    width, height = result.geometry.source_size
    left, top, right, bottom = result.geometry.box
    return {
        "image": "" if live else data_url(result.photo),
        "box": [left / width, top / height, right / width, bottom / height],
        "fit": result.geometry.mode,
    }


def quantized(maps: NDArray[np.float32]) -> MapsPayload:
    """Maps ``[..., rows, cols]`` as levels: value = levels / FULL_LEVEL * peaks, with a peak for each map."""
    peaks = np.atleast_1d(maps.max((-2, -1)))
    shares = maps / np.maximum(peaks, np.finfo(np.float32).tiny)[..., None, None]
    return {"levels": encode((FULL_LEVEL * shares).round().astype(np.uint16)), "peaks": encode(peaks)}


def encode(array: NDArray[Any]) -> str:
    """An array as base64 of its little-endian bytes, row by row."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


def model_input(result: Exploration) -> Image.Image:
    """The network's input without its normalization, grey or RGB."""
    mean, std = (np.array(values, np.float32)[:, None, None] for values in (result.preset.mean, result.preset.std))
    levels = (255 * (result.pixels[0].numpy() * std + mean)).round().clip(0, 255).astype(np.uint8)  # [C, H, W]
    return Image.fromarray(levels[0] if len(levels) == 1 else np.ascontiguousarray(levels.transpose(1, 2, 0)))


def data_url(image: Image.Image, *, lossless: bool = False) -> str:
    """A picture as a data URL: a PNG if it is grey or must be lossless, otherwise WebP."""
    kind, options = ("png", {}) if lossless or image.mode == "L" else ("webp", {"quality": 75})
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
