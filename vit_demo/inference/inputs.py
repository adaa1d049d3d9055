"""Pictures as the input of a network: read, fitted, normalised, and shown as the network gets them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeGuard, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vit_demo import images
from vit_demo.defaults import FITS, Fit
from vit_demo.errors import ImageError, InputError, PresetError
from vit_demo.weights import DEFAULT_PRESETS, Preset


def check_fit(fit: str) -> None:
    """``PresetError`` if there is no such way to fit a photo."""
    if fit not in FITS:
        raise PresetError(f"There is no fit {fit!r}: choose one of {', '.join(FITS)}.")


T = TypeVar("T")

Source = str | int | None  # the path of an image as it was given, its number among others, or neither
Transform = Callable[..., Any]  # from a picture to the input of a network

OnError = Literal["raise", "skip"] | Callable[[Source, InputError], object]
"""What becomes of an image that cannot be used: it is skipped, too, if a function is told."""

Picture = Image.Image | NDArray[np.uint8]  # upright RGB of any size, or an MNIST digit ``[28, 28]``


def default_preset(picture: Picture) -> str:
    """The name of the preset for a picture where none is named; only a drawing is read as a digit."""
    is_digit = images.is_drawing(picture) if isinstance(picture, Image.Image) else True
    return DEFAULT_PRESETS["digits" if is_digit else "photos"]


DISPLAY_SIZE = 448  # longest side, in pixels, of the picture that a photo's maps are laid over
THUMBNAIL_SIZE = 192  # longest side, in pixels, of the small copy of the whole photo


def read_picture(image: images.ImageSource) -> Image.Image:
    """A trusted picture, decoded in this process; ``ImageError`` if it cannot be."""
    return images.read_image(image, trusted=True)


def is_dense(x: Any) -> TypeGuard[Tensor]:
    """Whether something is a tensor whose numbers are all in memory."""
    return isinstance(x, Tensor) and x.layout is torch.strided and not x.is_meta


def read_input(
    image: images.ImageSource | Tensor, transform: Transform | None
) -> tuple[Tensor | None, Image.Image | None]:
    """The input of a network ``[C, height, width]``, if it is known, and the picture that it is of, if there is one."""
    picture = None
    if isinstance(image, Tensor):
        pixels = image
    else:
        picture = read_picture(image)
        if transform is None:
            return None, picture
        processor = getattr(transform, "image_processor", transform)
        if hasattr(processor, "preprocess"):  # of transformers
            pixels = processor(picture, return_tensors="pt")["pixel_values"]
        else:
            pixels = transform(picture)
    if isinstance(pixels, Tensor) and pixels.dim() == 4 and len(pixels) == 1:
        pixels = pixels[0]
    if not is_dense(pixels) or pixels.dim() != 3 or not pixels.numel():
        raise InputError("The input of a network is one picture, a tensor [C, H, W].")
    if not pixels.is_floating_point() or not torch.isfinite(pixels).all():
        raise InputError("The input of a network is normalised: float, and every number finite.")
    return pixels.detach(), picture


class Colours(NamedTuple):
    """Mean and deviation of each channel, of pixels from 0 to 1, and which channels are red, green and blue."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    order: tuple[int, ...]


LEVELS = [(0, 0, 0), (255, 255, 255), (102, 102, 102), (255, 0, 0), (0, 255, 0), (0, 0, 255)]


def colours_of(transform: Transform, size: tuple[int, int]) -> Colours | None:
    """What a transform does to colours, from pictures of one colour each; None if that is no line."""
    found = []
    try:
        for level in LEVELS:
            pixels, _ = read_input(Image.new("RGB", size, level), transform)
            assert pixels is not None
            found.append(pixels.double().cpu().flatten(1).median(1).values)
    except Exception:  # of one that divides by the picture's own deviation, for example
        return None
    black, white, grey, *primary = found
    slope = white - black
    if not slope.all() or ((black + 0.4 * slope - grey).abs() > 0.02 * slope.abs()).any():
        return None
    own = tuple(range(len(black)))
    order = tuple(((torch.stack(primary) - black) / slope).argmax(1).tolist())
    order = order if sorted(order) == list(own) else own
    return Colours(tuple((-black / slope).tolist()), tuple((1 / slope).tolist()), order)


def source_of(image: Any, number: int | None = None) -> Source:
    """The path of an image that was given as one, otherwise its number."""
    return os.fsdecode(image) if isinstance(image, str | os.PathLike) else number


def read_each(images: Iterable[Any], on_error: OnError, read: Callable[[Any, Source], T]) -> Iterator[T]:
    """What ``read`` makes of each image and its source; an error names that, or the image is skipped.

    Only an image that cannot be used is skipped: of a picture, what else goes wrong goes wrong with all of them.
    """
    if isinstance(images, str | bytes | bytearray | os.PathLike | Image.Image):
        kind = type(images).__name__
        raise InputError(f'Images are a list, such as sorted(Path("folder").iterdir()), not one {kind}.')
    if on_error not in ("raise", "skip") and not callable(on_error):
        raise InputError(f'on_error must be "raise", "skip" or a function, not {on_error!r}.')
    for number, image in enumerate(images):
        source = source_of(image, number)
        try:
            yield read(image, source)
        except InputError as error:
            if on_error != "raise" and (isinstance(error, ImageError) or isinstance(image, Tensor)):
                if callable(on_error):
                    on_error(source, error)
                continue
            name = f"Image {source}" if isinstance(source, int) else source
            raise type(error)(f"{name}: {error}") from error


@dataclass(frozen=True, eq=False)
class ModelInput:
    """The input of a network, float32 ``[1, C, height, width]``, normalised, and the pictures that show it.

    ``image`` is the picture as the network gets it: 28 x 28 grey for a digit, RGB at display size for a photo;
    ``photo`` a small copy of the whole photo, None for a digit.
    """

    pixels: Tensor
    geometry: images.Geometry
    image: Image.Image
    photo: Image.Image | None
    source: Source = None

    @classmethod
    def of(cls, picture: Picture, preset: Preset, patch_size: int, fit: Fit) -> ModelInput:
        """Preprocesses a picture for a preset; ``PresetError`` if patch size and image size do not fit.

        ``ImageError`` if a photo is too small, or a digit is wanted and nothing is drawn (``EmptyDrawingError``).
        """
        if preset.task == "digits":
            digit, place = images.place_digit(picture) if isinstance(picture, Image.Image) else (picture, None)
            pixels, whole = images.digit_to_tensor(digit)
            return cls(pixels, place or whole, Image.fromarray(digit), None)
        photo = picture if isinstance(picture, Image.Image) else Image.fromarray(picture).convert("RGB")
        images.check_photo(photo)
        pixels, geometry = images.preprocess(
            photo,
            image_size=preset.image_size,
            patch_size=patch_size,
            mean=preset.mean,
            std=preset.std,
            mode=fit,
            crop_fraction=preset.crop_fraction,
            crop_mode=preset.crop_mode,
            interpolation=preset.interpolation,
        )
        small = photo.copy()
        small.thumbnail((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS)
        bars = preset.mean if preset.crop_mode == "border" else (0, 0, 0)
        return cls(pixels, geometry, images.model_view(photo, geometry, DISPLAY_SIZE, bars), small)

    @classmethod
    def of_tensor(cls, pixels: Tensor, colours: Colours | None = None) -> ModelInput:
        """An input ``[C, height, width]`` as it is, and its picture; for None from its least number to its largest."""
        height, width = pixels.shape[1:]
        x = pixels.float().cpu()
        if colours is None:
            x = (x - x.min()) / (x.max() - x.min()).clamp_min(1e-6)
        else:
            mean, std = (x.new_tensor(values)[:, None, None] for values in colours[:2])
            x = (x * std + mean).clamp(0, 1)[list(colours.order)]
        x = x if len(x) == 3 else x.mean(0, keepdim=True).expand(3, -1, -1)
        picture = Image.fromarray((255 * x).round().byte().permute(1, 2, 0).contiguous().numpy().astype(np.uint8))
        larger = [DISPLAY_SIZE * side // max(width, height) for side in (width, height)]
        picture = picture.resize((max(1, larger[0]), max(1, larger[1])), Image.Resampling.NEAREST)
        geometry = images.Geometry((width, height), (0, 0, width, height), (width, height), "squash")
        return cls(pixels[None].float().cpu(), geometry, picture, picture)
