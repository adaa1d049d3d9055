"""The one service behind page, command line and API: (image, choices) -> Exploration.

Models are loaded once, the device is chosen once, and the last few results are kept by the content of their image, so
that a second question about the same picture costs no second pass.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import cachetools
import numpy as np
import torch
from PIL import Image

from vit_demo import explain, images, render
from vit_demo.accelerator import ZERO_GPU, best_device, borrows_gpu, device_name
from vit_demo.vit import Trace, ViT
from vit_demo.zoo import Preset, find_preset, load_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

Fit = Literal["crop", "squash", "keep"]
Direction = Literal["from", "to"]
Query = tuple[int, int] | None

DEFAULT_PRESET = "digits-tiny"

CACHE_BYTES = 256 << 20
"""What the kept results may weigh together."""

DISPLAY_SIZE = 448
"""Longest side, in pixels, of the picture that a photo's maps are laid over."""


@dataclass(frozen=True, eq=False)
class Exploration:
    """What one image did to one model: everything that the page shows, and where every map comes from.

    Attributes:
        preset: Name of the preset.
        patch_size: In pixels of the network's input.
        grid: Rows and columns of patches.
        logits: float32 ``[K]``.
        labels: The name of each logit.
        trace: q, k, v of every block, on the device that ran the pass.
        image: The picture exactly as the model saw it: 28 x 28 grey for digits, RGB at display size for photos.
        geometry: Which part of the source that is.
        seconds: Time of the forward pass.
        device: Where it ran.
        key: Stands for (image, preset, patch size, fit); equal keys have equal results.
    """

    preset: str
    patch_size: int
    grid: tuple[int, int]
    logits: NDArray[np.float32]
    labels: tuple[str, ...]
    trace: Trace
    image: Image.Image
    geometry: images.Geometry
    seconds: float
    device: str
    key: str

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Softmax of the logits, ``[K]``, summing to 1."""
        return torch.from_numpy(self.logits).softmax(0).numpy()

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The likeliest labels with their probabilities, highest first."""
        order = np.argsort(-self.probabilities, kind="stable")[:count]
        return [(self.labels[i], float(self.probabilities[i])) for i in order]

    def attention(
        self, layer: int = -1, head: int | None = None, query: Query = None, direction: Direction = "from"
    ) -> NDArray[np.float32]:
        """One map of attention; it does not depend on the class.

        Args:
            layer: Block, from 0; negative from the end.
            head: From 0; None for the mean of all heads.
            query: (row, col) of a patch; None for the class token, or the mean of all tokens where there is none.
            direction: ``"from"``: where the query looks. ``"to"``: who looks at it.

        Returns:
            float32 ``[rows, cols]``, the true values: over all tokens, prefix included, a ``"from"`` map sums to 1.

        Raises:
            ValueError: If there is no such block, head, patch or direction.
        """
        self._check(layer, head, query)
        if direction not in ("from", "to"):
            raise ValueError(f'direction must be "from" or "to", not {direction!r}.')
        look = explain.attention_from if direction == "from" else explain.attention_to
        values = look(self.trace, layer, self._token(query))
        values = values[0].mean(0) if head is None else values[0, head]  # [B, H, N] -> [N]
        return explain.to_grid(values, self.trace).cpu().numpy()

    def attention_maps(self, query: Query = None) -> NDArray[np.float32]:
        """Where one token looks in every block and head: float32 ``[blocks, heads, rows, cols]``."""
        self._check(-1, None, query)
        token, blocks = self._token(query), range(self.trace.num_blocks)
        values = torch.stack([explain.attention_from(self.trace, layer, token)[0] for layer in blocks])
        return explain.to_grid(values, self.trace).cpu().numpy()

    def rollout(self, query: Query = None) -> NDArray[np.float32]:
        """Attention rollout of one token, float32 ``[rows, cols]``; it does not depend on the class.

        Over all tokens, prefix included, it sums to 1.
        """
        self._check(-1, None, query)
        values = explain.rollout(self.trace, self._token(query))[0]
        return explain.to_grid(values, self.trace).cpu().numpy()

    def overlay(self, values: NDArray[np.floating], alpha: float = 0.6) -> Image.Image:
        """A map over the picture, scaled to its own maximum for show, as an RGB image at display size.

        Args:
            values: ``[rows, cols]``, at least 0.
            alpha: Opacity of the brightest patch, in [0, 1].
        """
        return render.overlay(self.image, values, alpha=alpha, display_size=DISPLAY_SIZE)

    def _token(self, query: Query) -> int | None:
        if query is not None:
            return self.trace.num_prefix + query[0] * self.grid[1] + query[1]
        return 0 if find_preset(self.preset).config.class_token else None

    def _check(self, layer: int, head: int | None, query: Query) -> None:
        blocks, heads, (rows, cols) = self.trace.num_blocks, self.trace.num_heads, self.grid
        if not -blocks <= layer < blocks:
            raise ValueError(f"There is no block {layer}: this model has {blocks}, counted from 0.")
        if head is not None and not 0 <= head < heads:
            raise ValueError(f"There is no head {head}: this model has {heads}, counted from 0.")
        if query is not None and not (0 <= query[0] < rows and 0 <= query[1] < cols):
            raise ValueError(f"There is no patch {tuple(query)}: the grid has {rows} rows and {cols} columns.")


class Explorer:
    """Loads models once, runs them on one device, keeps the last results; safe to call from several threads.

    Args:
        device: ``"cuda"``, ``"mps"``, ``"cpu"``, or None for the best that is there.
    """

    def __init__(self, device: str | None = None) -> None:
        self.device = torch.device(device) if device else best_device()
        self._models: dict[str, ViT] = {}
        self._results: cachetools.LRUCache[str, Exploration] = cachetools.LRUCache(CACHE_BYTES, getsizeof=_weight)
        self._lock = threading.RLock()
        self._forward = borrows_gpu(self._forward_here)

    @property
    def loaded(self) -> list[str]:
        """Names of the weights in memory."""
        return sorted(self._models)

    def explore(
        self, image: images.ImageSource, preset: str, patch_size: int | None = None, fit: Fit = "crop"
    ) -> Exploration:
        """Runs one image through one model.

        Args:
            image: Path, bytes, ``PIL.Image``, or uint8 array ``[H, W]`` or ``[H, W, 3]``.
            preset: Name of the preset.
            patch_size: In pixels; the preset's default for None.
            fit: How a photo becomes the input: ``"crop"`` (centre square), ``"squash"``, or ``"keep"`` (the whole
                picture in its own shape, on a rectangular grid). Drawings are always fitted the way MNIST was.

        Returns:
            The result; the same object again for the same image and choices, while it is remembered.

        Raises:
            ImageError: If the image cannot be used; ``EmptySketchError`` if nothing is drawn.
            PresetError: If there is no such preset, or it does not know the patch size.
            CheckpointError: If the weights cannot be used.
        """
        chosen = find_preset(preset)
        patch_size = chosen.check_patch_size(patch_size)
        picture = images.read_image(image)
        key = _key(picture, preset, patch_size, fit if chosen.task == "photos" else "digit")
        with self._lock:
            result = self._results.get(key)
            if result is None:
                result = self._run(picture, chosen, patch_size, fit, key)
                if _weight(result) <= self._results.maxsize:
                    self._results[key] = result
        return result

    def warm_up(self, presets: Iterable[str]) -> None:
        """Loads models and runs each once on nothing, so that the first visitor does not wait for it."""
        for name in presets:
            preset = find_preset(name)
            blank = torch.zeros(1, preset.config.in_channels, preset.image_size, preset.image_size)
            self.model(preset, preset.default_patch_size)
            self._forward(blank, preset.name, preset.default_patch_size)

    def recall(self, key: str) -> Exploration | None:
        """A result by its key, while it is remembered."""
        with self._lock:
            return self._results.get(key)

    def model(self, preset: Preset, patch_size: int) -> ViT:
        """The network that serves a patch size, on this explorer's device, loaded once."""
        name = preset.weights_name(patch_size)
        with self._lock:
            if name not in self._models:
                self._models[name] = load_model(preset, patch_size).to(self.device)
            return self._models[name]

    def _run(self, picture: Image.Image, preset: Preset, patch_size: int, fit: Fit, key: str) -> Exploration:
        self.model(preset, patch_size)
        tensor, geometry, seen = _prepare(picture, preset, patch_size, fit)
        logits, trace, seconds = self._forward(tensor, preset.name, patch_size)
        return Exploration(
            preset=preset.name,
            patch_size=patch_size,
            grid=trace.grid,
            logits=logits.numpy(),
            labels=preset.labels,
            trace=trace,
            image=seen,
            geometry=geometry,
            seconds=seconds,
            device=device_name(self.device),
            key=key,
        )

    def _forward_here(self, tensor: torch.Tensor, preset: str, patch_size: int) -> tuple[torch.Tensor, Trace, float]:
        """The pass itself, its arguments and results small and picklable: on ZeroGPU it runs in another process."""
        model, trace = self.model(find_preset(preset), patch_size), Trace()
        started = time.perf_counter()
        with torch.inference_mode():
            logits = model(tensor.to(self.device), trace, patch_size=patch_size)[0].float().cpu()
        seconds = time.perf_counter() - started
        return logits, trace.to("cpu") if ZERO_GPU else trace, seconds


@lru_cache(maxsize=4)
def explorer_on(device: str | None = None) -> Explorer:
    """The shared explorer of a device."""
    return Explorer(device)


def explore(
    image: images.ImageSource,
    preset: str = DEFAULT_PRESET,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
) -> Exploration:
    """Runs one image through one model on the shared explorer of a device. See ``Explorer.explore``.

    Example:
        >>> import vit_demo
        >>> ex = vit_demo.explore("seven.png", preset="digits-tiny", patch_size=4)
        >>> ex.top(1)
        [('7', 0.998...)]
    """
    return explorer_on(device).explore(image, preset, patch_size, fit)


def _prepare(
    picture: Image.Image, preset: Preset, patch_size: int, fit: Fit
) -> tuple[torch.Tensor, images.Geometry, Image.Image]:
    """The input ``[1, C, H, W]``, where it came from, and the picture to show for it."""
    if preset.task == "digits":
        digit = images.to_mnist(picture)
        tensor, geometry = images.to_tensor_digit(digit)
        return tensor, geometry, Image.fromarray(digit)
    tensor, geometry = images.preprocess(
        picture,
        image_size=preset.image_size,
        patch_size=patch_size,
        mean=preset.mean,
        std=preset.std,
        mode=fit,
    )
    return tensor, geometry, images.seen(picture, geometry, DISPLAY_SIZE)


def _key(picture: Image.Image, *choices: str | int) -> str:
    digest = hashlib.sha256(repr((picture.size, choices)).encode())
    digest.update(picture.tobytes())
    return digest.hexdigest()[:32]


def _weight(result: Exploration) -> int:
    """Bytes held by a result: its trace and its picture."""
    tensors = [*result.trace.q, *result.trace.k, *result.trace.v]
    picture = result.image.width * result.image.height * len(result.image.getbands())
    return sum(t.numel() * t.element_size() for t in tensors) + picture
