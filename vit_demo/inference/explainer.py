"""One Vision Transformer for many images: named, or in memory and as it is; everything runs in the caller's thread."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, NamedTuple, overload

import torch
from torch import Tensor, nn

from vit_demo.accelerator import best_device, device_name
from vit_demo.checks import find_device, path_or_name, whole_number
from vit_demo.defaults import DEFAULT_METHOD
from vit_demo.errors import InputError, PresetError, warn
from vit_demo.images import ImageSource
from vit_demo.inference import maps, words
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.forward import RunOnModel, forward_batch, run_in_memory
from vit_demo.inference.found import (
    CHANGED,
    ONLY_IN_MEMORY,
    UNCLEAR,
    channels_of,
    preset_of,
    unnormalised,
    with_notes,
    with_scores,
)
from vit_demo.inference.inputs import (
    Colours,
    Fit,
    ModelInput,
    OnError,
    Source,
    Transform,
    check_fit,
    colours_of,
    read_each,
    read_input,
    read_picture,
    source_of,
)
from vit_demo.inference.labels import Labels
from vit_demo.inference.networks import Named
from vit_demo.scores import SCORES, Scores
from vit_demo.sentences import joined
from vit_demo.trace import Output, TracedViT, adapt
from vit_demo.weights import Preset, find_preset
from vit_demo.weights.hub.preprocessing import preprocessing_of
from vit_demo.weights.taught_heads import Taught
from vit_demo.words.texts import AS_TYPED

GIVEN = "Its input was given, so this package prepared nothing."
TRANSFORMED = "Its photo was prepared by the transform that was given."
UNMEASURED = "That changes colours by more than a factor and an offset, so which number is black is assumed."

NetworkOf = Callable[[tuple[int, int], int], tuple[Preset, TracedViT]]  # by the size and the channels of its input

_presets: dict[str, Preset] = {}


class Prepared(NamedTuple):
    """An image that is ready for a network: what ``Exploration.of`` takes first."""

    given: ModelInput
    preset: Preset
    patch_size: int
    fit: Fit
    run: RunOnModel


class Explainer:
    """Explains what one network says of many images; its structure is found, and proved, once.

    Args:
        model: Name of a preset, a repository of the Hub (``org/name``), a folder, a file of ``vit-demo teach``; or a
            network in memory: any Vision Transformer of timm, transformers, torchvision or your own, which stays as it
            is, on its device; or one that ``vit_demo.teach`` gave.
        labels: As in ``vit_demo.explore``, like all others here; words for a network of pictures and text.
        transform: From a picture to the input of a network in memory.
        scores: What the logits become.
        output: Where the logits of a network in memory are in what it returns.
        patch_size: In pixels.
        device: Where a named network runs.
        fit: How a photo becomes the input.
        template: The text that stands for a word.

    Raises:
        PresetError: If there is no such preset, or it has no such patch size.
        CheckpointError: If the weights cannot be used.
        InputError: If this machine has no such device, or the scores are unknown.

    Example:
        >>> explainer = vit_demo.Explainer(timm.create_model("vit_tiny_patch16_224", pretrained=True))
        >>> for ex in explainer.batch(["lion.jpg", "tiger.jpg"]):
        ...     ex.top(1), ex.relevance()
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | nn.Module | Taught,
        *,
        labels: Labels | None = None,
        transform: Transform | None = None,
        scores: Literal["auto"] | Scores = "auto",
        output: Output | None = None,
        patch_size: int | None = None,
        device: str | None = None,
        fit: Fit = "crop",
        template: str = AS_TYPED,
    ) -> None:
        check_fit(fit)
        if scores not in ("auto", *SCORES):
            raise InputError(f"There are no scores {scores!r}: choose one of auto, {', '.join(SCORES)}.")
        if not (transform is None or callable(transform) or hasattr(transform, "image_processor")):
            raise InputError(f"transform= is a function of a picture, or a processor, not {transform!r:.40}.")
        self._place = find_device(device) if device else best_device()
        taught = model if isinstance(model, Taught) else None
        if taught is not None:
            transform, output = transform or taught.transform, output or taught.output
            labels = labels or (taught.labels if taught.module else None)
            patch_size, model = patch_size or taught.patch_size, taught.module or taught.preset.name
        if isinstance(model, nn.Module) and words.has_two_towers(model):
            model = words.classifier_of(model, labels, transform, template)
            labels = model.words
            scores = ("softmax" if model.is_softmax else "sigmoid") if scores == "auto" else scores
        self._labels, self._transform, self._scores, self._fit = labels, transform, scores, fit
        self._output, self._measured = output, list[Colours | None]()
        self._module = model if isinstance(model, nn.Module) else None
        if self._module is not None:
            self._patch_size = None if patch_size is None else whole_number(patch_size, "The patch size", 1)
            self._known = preprocessing_of(self._module)
            return
        if transform is not None or output is not None:
            raise InputError(ONLY_IN_MEMORY.format("transform=" if output is None else "output="))
        name = path_or_name(model)
        preset = taught.preset if taught else _presets.get(name) or find_preset(name)
        if preset.is_downloaded:  # its configuration is read once
            _presets[name] = preset
        if labels is not None:
            preset = preset.with_words(list(labels.values()) if isinstance(labels, Mapping) else labels, template)
        self._preset = preset if scores == "auto" else replace(preset, scores=scores)
        self._patch_size = preset.check_patch_size(patch_size)

    def __call__(self, image: ImageSource | Tensor) -> Exploration:
        """The result for one image; arguments and errors as in ``vit_demo.explore``."""
        return Exploration.of(*self.prepare(image, source_of(image)), device_name)

    def batch(
        self,
        images: Iterable[ImageSource | Tensor],
        batch_size: int = 16,
        on_error: OnError = "raise",
    ) -> Iterator[Exploration]:
        """The results of many images, which pass through the network together where their inputs have one shape.

        Args:
            images: A list, or what else gives one after the other, each as ``image`` of ``vit_demo.explore``; they are
                read when their turn comes.
            batch_size: How many are in memory at once.
            on_error: For an image that cannot be used: ``"raise"`` an error that names its file, or ``"skip"`` it; a
                function skips it, too, and is called with its source and the error.

        Yields:
            The result of each image, in their order; ``source`` is its path, or else its number in ``images``, from 0,
            and ``seconds`` its share of its batch.

        Raises:
            InputError: If an argument is wrong, or an image cannot be used.
        """
        size = whole_number(batch_size, "The batch size", 1)
        network_of = cache(self._network)
        prepared = read_each(images, on_error, partial(self.prepare, network_of=network_of))
        while part := list(itertools.islice(prepared, size)):
            for _, group in itertools.groupby(part, lambda one: one.given.pixels.shape):
                yield from _run_together(list(group))
            network_of.cache_clear()  # the caller may have changed it meanwhile

    @overload
    def maps(
        self, x: Tensor, method: str = ..., targets: maps.Targets = ..., against: maps.Targets = ...,
        return_logits: Literal[False] = ..., **options: Any
    ) -> Tensor: ...  # fmt: skip

    @overload
    def maps(
        self, x: Tensor, method: str = ..., targets: maps.Targets = ..., against: maps.Targets = ...,
        *, return_logits: Literal[True], **options: Any
    ) -> tuple[Tensor, Tensor]: ...  # fmt: skip

    def maps(
        self,
        x: Tensor,
        method: str = DEFAULT_METHOD,
        targets: maps.Targets = None,
        against: maps.Targets = None,
        return_logits: bool = False,
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The maps of a batch of inputs by any registered method.

        Args:
            x: The network's own input, normalised, float ``[B, C, H, W]``.
            method: Its name; see ``vit_demo.methods()``.
            targets: A label or index for all images, ``[B]`` of them, or a function from the logits ``[B, K]``, or from
                the embeddings ``[B, D]`` of a network without classes, to the scalars ``[B]`` that are explained; each
                image's predicted class for None. ``label=`` is the same, as all that explains one image names it.
            against: The classes that the first are compared with, in the same forms but a function; None for none.
            return_logits: Whether the logits are returned, too, of the same pass as the maps.
            **options: The method's own, such as ``block``, ``query`` as (row, col), ``window`` or ``budget``.

        Returns:
            float32 ``[B, rows, cols]`` on the device of ``x``, in the method's unit; with ``return_logits`` the logits
            ``[B, K]``, too.

        Raises:
            InputError: If ``x`` is no such batch, or there is no such method or option.
            LabelError: If there is no such class, or the network has none and ``targets`` is no function.
        """
        maps.check_batch(x)
        preset, network = self._network((x.shape[2], x.shape[3]), x.shape[1])
        if (label := options.pop("label", targets)) is not targets is not None:
            raise InputError("targets= and label= are the same: give only one of both.")
        logits = list[Tensor]() if return_logits else None
        found = maps.maps(network, preset.labels, x, method, label, against, options, logits)
        return found if logits is None else (found, torch.cat(logits).to(x.device))

    def runner(self, pixels: Tensor) -> RunOnModel:
        """Runs functions on the network for inputs ``[1, C, height, width]`` of a shape, as results need it."""
        if self._module is None:
            return Named(self._preset, self._preset.check_patch_size(self._patch_size), str(self._place))
        return partial(self._run, (pixels.shape[2], pixels.shape[3]), pixels.shape[1])

    def prepare(self, image: ImageSource | Tensor, source: Source, network_of: NetworkOf | None = None) -> Prepared:
        """The input of an image, before any pass; raises as when the image is explained.

        ``network_of`` is what is asked for the network: for images of a batch one that asks once for each shape.
        """
        if self._module is None:
            if isinstance(image, Tensor):
                raise InputError("Tensors are for networks in memory: pass one as the model.")
            preset, size = self._preset, self._preset.check_patch_size(self._patch_size)
            given = replace(ModelInput.of(read_picture(image), preset, size, self._fit), source=source)
            return Prepared(given, preset, size, self._fit, Named(preset, size, str(self._place)))
        pixels, picture = read_input(image, self._transform)
        height, width = (self._known.image_size,) * 2 if pixels is None else pixels.shape[1:]
        channels = channels_of(self._module) if pixels is None else len(pixels)
        preset, network = (network_of or self._network)((height, width), channels)
        if self._fit == "keep" and not network.structure.takes_any_size:
            raise PresetError(
                'This network takes square pictures only: choose fit="crop" or "squash", or make it with '
                "dynamic_img_size=True if it is timm's."
            )
        if pixels is not None:
            note = GIVEN if isinstance(image, Tensor) else TRANSFORMED
            if picture is not None and self._transform is not None and not self._measured:
                self._measured.append(colours_of(self._transform, picture.size))
            colours = None if picture is None else self._measured[0]
            if colours is not None:
                preset = replace(preset, mean=colours.mean, std=colours.std)
            elif picture is not None:
                note = joined(note, UNMEASURED)
            preset = replace(preset, assumed=joined(note, preset.note))
            given = ModelInput.of_tensor(pixels, colours)
        else:
            assert picture is not None
            if network.structure.scale is None:
                raise InputError(CHANGED)
            if preset.task == "photos" and channels != 3:
                raise InputError(f"This network takes {channels} channels: pass its input as a tensor, or transform=.")
            given = ModelInput.of(picture, preset, network.patch_size, self._fit)
            given, preset = unnormalised(given, preset, network.structure.scale, self._known.is_known)
            if preset.assumed and not self._known.is_known:
                warn(preset.assumed)
        is_unclear = network.structure.already == "unclear" and self._scores == "auto" and bool(preset.labels)
        if is_unclear:
            warn(UNCLEAR)
        preset = replace(preset, assumed=with_notes(preset.assumed, network.structure.overlaps, is_unclear))
        run = partial(self._run, (height, width), channels)
        return Prepared(replace(given, source=source), preset, network.patch_size, self._fit, run)

    def _run(self, size: tuple[int, int], channels: int, /, *arguments: Any, **options: Any) -> Any:
        """As ``RunOnModel``, on the network in memory as it is by now."""
        return run_in_memory(self._traced(size, channels), *arguments, **options)

    def _network(self, size: tuple[int, int], channels: int) -> tuple[Preset, TracedViT]:
        """The network for inputs of a size, and what is known of it."""
        if self._module is None:
            patch_size = self._preset.check_patch_size(self._patch_size)
            loaded = Named(self._preset, patch_size, str(self._place)).network(self._place)
            network = loaded.resized(patch_size)
            network.scores = loaded.scores
            return self._preset, network
        network = self._traced(size, channels)
        return preset_of(self._module, network, self._known, self._labels), network

    def _traced(self, size: tuple[int, int], channels: int) -> TracedViT:
        """The network in memory for inputs of a size; proved again if anything but its weights has changed."""
        assert self._module is not None
        own = None if hasattr(self._module, "set_input_size") else self._patch_size  # others are resized below
        network = adapt(self._module, size, patch_size=own, in_channels=channels, output=self._output)
        if self._patch_size is not None:
            network = network.resized(self._patch_size)
        return with_scores(network, self._scores, self._known.problem_type, is_named=self._labels is not None)


def _run_together(part: list[Prepared]) -> Iterator[Exploration]:
    """The results of prepared images of one shape."""
    pixels = torch.cat([given.pixels for given, *_ in part])
    for arguments, done in zip(part, part[0].run(forward_batch, pixels), strict=True):
        yield Exploration.of(*arguments, device_name, done)
