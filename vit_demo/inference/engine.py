"""The one service behind page, command line and API: (image, choices) -> Exploration.

Models are loaded once, the device is chosen once, and the last few results are kept by the content of their image, so
that a second question about the same picture costs no second pass.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar

import cachetools
import torch
from PIL import Image
from torch import Tensor

from vit_demo import images
from vit_demo.accelerator import ZERO_GPU, best_device, borrows_gpu, device_name
from vit_demo.inference.exploration import Exploration, one_pass
from vit_demo.inference.traced import DISPLAY_SIZE, THUMBNAIL_SIZE
from vit_demo.model import Trace, ViT
from vit_demo.weights import Preset, Progress, fetch_weights, find_preset, load_model

T = TypeVar("T")
Fit = Literal["crop", "squash", "keep"]

DEFAULT_PRESET = "digits-small"

CACHE_BYTES = 256 << 20
"""What the kept results may weigh together."""

MODELS_BYTES = 5 << 30
"""What the models in memory may weigh together; the one that was least asked for lately makes room."""


class Explorer:
    """Loads models once, runs them on one device, keeps the last results; safe to call from several threads.

    Args:
        device: ``"cuda"``, ``"mps"``, ``"cpu"``, or None for the best that is there.
    """

    def __init__(self, device: str | None = None) -> None:
        self.device = torch.device(device) if device else best_device()
        self._models: cachetools.LRUCache[str, ViT] = cachetools.LRUCache(MODELS_BYTES, getsizeof=_model_weight)
        self._results: cachetools.LRUCache[str, Exploration] = cachetools.LRUCache(CACHE_BYTES, getsizeof=_weight)
        self._lock = threading.RLock()
        self._forward = borrows_gpu(self._forward_here)
        self._work = borrows_gpu(self._work_here)

    @property
    def loaded(self) -> list[str]:
        """Names of the weights in memory."""
        return sorted(self._models)

    def explore(
        self,
        image: images.ImageSource,
        preset: str,
        patch_size: int | None = None,
        fit: Fit = "crop",
        progress: Progress | None = None,
    ) -> Exploration:
        """Runs one image through one model.

        Args:
            image: Path, bytes, ``PIL.Image``, or uint8 array ``[H, W]`` or ``[H, W, 3]``.
            preset: Name of the preset, a repository of the Hub (``org/name``), or a folder.
            patch_size: In pixels; the preset's default for None.
            fit: How a photo becomes the input: ``"crop"`` (centre square), ``"squash"``, or ``"keep"`` (the whole
                picture in its own shape, on a rectangular grid). Drawings are always fitted the way MNIST was.
            progress: Told how far it is while weights are fetched; a bar on stderr for None.

        Returns:
            The result; the same object again for the same image and choices, while it is remembered.

        Raises:
            ImageError: If the image cannot be used; ``EmptySketchError`` if nothing is drawn.
            PresetError: If there is no such preset, or it does not know the patch size.
            CheckpointError: If the weights cannot be used.
        """
        chosen = find_preset(preset, progress)
        patch_size = chosen.check_patch_size(patch_size)
        picture = images.read_image(image)
        self.fetch(chosen, progress)
        key = _key(picture, preset, patch_size, fit if chosen.task == "photos" else "digit")
        with self._lock:
            result = self._results.get(key)
            if result is None:
                result = self.remember(self._run(picture, chosen, patch_size, fit, key))
        return result

    def warm_up(self, presets: Iterable[str]) -> None:
        """Loads models and runs each once on nothing, so that the first visitor does not wait for it."""
        for name in presets:
            preset = find_preset(name)
            blank = torch.zeros(1, preset.config.in_channels, preset.image_size, preset.image_size)
            self.model(preset, preset.default_patch_size)
            self._forward(blank, preset.name, preset.default_patch_size)

    def fetch(self, preset: Preset, progress: Progress | None = None) -> None:
        """Sees to it that a preset's weights are on this machine, and lets others explore meanwhile.

        Raises:
            CheckpointError: If they cannot be had.
        """
        if preset.source != "bundled" and preset.name not in self._models:
            fetch_weights(preset, progress)

    def remember(self, result: Exploration) -> Exploration:
        """Keeps a result that follows from another, such as one without some patches, to be recalled by its key."""
        with self._lock:
            if _weight(result) <= self._results.maxsize:
                self._results[result.key] = result
        return result

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
            pixels=tensor,
            photo=_thumbnail(picture) if preset.task == "photos" else None,
            ask=partial(self._ask, preset.name, patch_size),
        )

    def _ask(self, preset: str, patch_size: int, job: Callable[..., T], /, *arguments: Any, **options: Any) -> T:
        """What a result needs the network for; see ``exploration.Ask``."""
        if ZERO_GPU:
            options.pop("progress", None)  # nothing can be told from another process
        return self._work(preset, patch_size, job, arguments, options)

    def _work_here(
        self, preset: str, patch_size: int, job: Callable[..., T], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> T:
        """The job itself, like ``_forward_here`` in another process on ZeroGPU; gradients begin and end in it."""
        model = self.model(find_preset(preset), patch_size)
        arguments = tuple(self._here(value) for value in arguments)
        options = {name: self._here(value) for name, value in options.items()}
        return _handed_back(job(model, *arguments, patch_size=patch_size, **options))

    def _here(self, value: Any) -> Any:
        return value.to(self.device) if isinstance(value, Tensor) else value

    def _forward_here(self, tensor: torch.Tensor, preset: str, patch_size: int) -> tuple[torch.Tensor, Trace, float]:
        """The pass itself, its arguments and results small and picklable: on ZeroGPU it runs in another process."""
        model = self.model(find_preset(preset), patch_size)
        return _handed_back(one_pass(model, tensor.to(self.device), patch_size=patch_size))


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
        >>> ex = vit_demo.explore("seven.png", preset="digits-small", patch_size=4)
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
        crop_fraction=preset.crop_fraction,
        interpolation=preset.interpolation,
    )
    return tensor, geometry, images.seen(picture, geometry, DISPLAY_SIZE)


def _thumbnail(picture: Image.Image) -> Image.Image:
    small = picture.convert("RGB")
    small.thumbnail((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS)
    return small


def _handed_back(found: Any) -> Any:
    """Tensors on the CPU; a trace too where it must leave this process, elsewhere it stays on the device."""
    if isinstance(found, tuple):
        return tuple(map(_handed_back, found))
    if isinstance(found, Tensor) or (ZERO_GPU and isinstance(found, Trace)):
        return found.to("cpu")
    return found


def _key(picture: Image.Image, *choices: str | int) -> str:
    digest = hashlib.sha256(repr((picture.size, choices)).encode())
    digest.update(picture.tobytes())
    return digest.hexdigest()[:32]


def _model_weight(model: ViT) -> int:
    """Bytes of a model's weights."""
    return sum(p.numel() * p.element_size() for p in model.parameters())


def _weight(result: Exploration) -> int:
    """Bytes held by a result: its trace, its input and its picture."""
    tensors = [*result.trace.q, *result.trace.k, *result.trace.v, result.pixels]
    picture = result.image.width * result.image.height * len(result.image.getbands())
    return sum(t.numel() * t.element_size() for t in tensors) + picture
