"""The numbers of a result: one image in one model, without what is computed from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vit_demo import images
from vit_demo.checks import whole_number
from vit_demo.defaults import NUM_CLASSES
from vit_demo.inference.forward import RunOnModel, forward_with_trace, run_changed
from vit_demo.inference.inputs import Fit, ModelInput, Source
from vit_demo.scores import to_scores
from vit_demo.trace import Intervention, Trace
from vit_demo.trace.intervention import NOTHING
from vit_demo.weights import Preset
from vit_demo.weights.hub.preprocessing import PREPARED, Preprocessing

T = TypeVar("T")
Query = tuple[int, int] | None
Label = str | int | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """The input, the choices and the pass of one image in one model.

    Attributes:
        preset: The model.
        patch_size: In pixels of the network's input.
        fit: How a photo was fitted: ``"crop"``, ``"squash"`` or ``"keep"``.
        grid: Rows and columns of patches.
        logits: float32 ``[K]``; empty for a model without classes.
        trace: q, k, v of every block, on the device that ran the pass.
        image: The picture as the model saw it: 28 x 28 grey for digits, RGB at display size for photos.
        photo: A small copy of the whole upright photo; None for a drawing.
        geometry: Which part of the source ``image`` covers.
        pixels: The network's input, float32 ``[1, C, height, width]``, normalised.
        seconds: Time of the forward pass.
        device: Where it ran.
        source: The path of the image, as a string, or its number in a batch; None where there is neither.
        dropped: The patches that were dropped from the sequence; see ``drop_patches``.
        intervention: What is silent, and which tokens are of another result; see ``without`` and ``with_tokens``.
        run_on_model: Runs a function on the network, which a result does not hold.
    """

    preset: Preset
    patch_size: int
    fit: Fit
    grid: tuple[int, int]
    logits: NDArray[np.float32]
    trace: Trace
    image: Image.Image
    photo: Image.Image | None = None
    geometry: images.Geometry
    pixels: Tensor
    seconds: float
    device: str
    source: Source = None
    dropped: tuple[tuple[int, int], ...] = ()
    intervention: Intervention = NOTHING
    run_on_model: RunOnModel

    def __post_init__(self) -> None:
        """Protects the logits: a cached result is given to several callers."""
        self.logits.setflags(write=False)

    @classmethod
    def of(
        cls,
        given: ModelInput,
        preset: Preset,
        patch_size: int,
        fit: Fit,
        run_on_model: RunOnModel,
        where: Callable[[torch.device], str],
        done: tuple[Tensor, Trace, float] | None = None,
    ) -> Self:
        """The result of a forward pass, or of one that is done; ``where`` names the device that it ran on."""
        logits, trace, seconds = done or run_on_model(forward_with_trace, given.pixels)
        return cls(
            preset=preset,
            patch_size=patch_size,
            fit=fit,
            grid=trace.grid,
            logits=logits.numpy(),
            trace=trace,
            **vars(given),
            seconds=seconds,
            device=where(trace.q[0].device),
            run_on_model=run_on_model,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each logit."""
        return self.preset.labels

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Softmax of the logits, ``[K]``, summing to 1, or each one's sigmoid, by ``preset.scores``.

        Where that is ``"none"``, they are the logits, and no probabilities.
        """
        return to_scores(torch.tensor(self.logits, device="cpu"), self.preset.scores).numpy()

    @property
    def preprocessing(self) -> Preprocessing:
        """How its picture became the input; ``note`` says what had to be assumed, if anything had."""
        known = {name: getattr(self.preset, name) for name in PREPARED}
        size, note = self.preset.image_size, self.preset.assumed
        return Preprocessing(**known, image_size=size, labels=self.labels, note=note)

    @property
    def is_confident(self) -> bool:
        """Whether confidence is not low (``Preset.is_confident``).

        False without classes or probabilities, and for one plain colour.
        """
        return bool(self.preset.is_confident(self.probabilities)) and not images.is_plain(self.pixels)

    def top(self, count: int = NUM_CLASSES) -> list[tuple[str, float]]:
        """The most probable labels with their ``probabilities``, highest first; empty for a model without classes.

        Raises:
            InputError: If ``count`` is not a whole number from 0.
        """
        return ranking(self.labels, self.probabilities, count)

    @property
    def num_bytes(self) -> int:
        """Memory of this result: trace, input and pictures."""
        pictures = sum(p.width * p.height * len(p.getbands()) for p in (self.image, self.photo) if p is not None)
        return self.trace.num_bytes + self.pixels.nbytes + self.logits.nbytes + pictures

    def run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Runs a function on the network, changed by the intervention, and on this result's input; see ``RunOnModel``.

        Dropped patches are not in the sequence.
        """
        pixels, kept = self.pixels.detach(), kept_patches(self)  # a caller may want gradients of the input
        if self.intervention != NOTHING:
            arguments, function = (self.intervention, function, *arguments), run_changed
        return self.run_on_model(function, pixels, *arguments, kept_patches=kept, **options)

    def again(self, **choices: Any) -> Self:
        """The result of another pass on the same input, with some attributes changed."""
        new = replace(self, **choices)
        logits, trace, seconds = new.run(forward_with_trace)
        return replace(new, logits=logits.numpy(), trace=trace, seconds=seconds)


def kept_patches(result: Result) -> Tensor | None:
    """The patches of the sequence ``[1, K]``, counted row by row; None for all."""
    if not result.dropped:
        return None
    dropped = {row * result.grid[1] + col for row, col in result.dropped}
    return torch.tensor([[i for i in range(result.grid[0] * result.grid[1]) if i not in dropped]], device="cpu")


def ranking(labels: Sequence[str], probabilities: NDArray[np.float32], count: int) -> list[tuple[str, float]]:
    """The (label, probability) pairs of the most probable classes, highest first."""
    order = np.argsort(-probabilities, kind="stable")[: whole_number(count, "The number of labels", 0)]
    return [(labels[i], float(probabilities[i])) for i in order]
