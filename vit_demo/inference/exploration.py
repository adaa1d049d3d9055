"""The result of one image in one model: the prediction, and every map on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vit_demo import images, inference, metrics
from vit_demo.defaults import NUM_CLASSES, Direction
from vit_demo.errors import InputError
from vit_demo.inference import figures, heatmaps, patch_features, saved, sequence, smallest_sets, words
from vit_demo.inference.forward import RunOnModel, forward_with_trace
from vit_demo.inference.inputs import Fit, ModelInput, Source
from vit_demo.methods import Progress, find_method
from vit_demo.scores import as_text, to_scores
from vit_demo.trace import Trace
from vit_demo.weights import Preset
from vit_demo.weights.hub.preprocessing import PREPARED, Preprocessing

T = TypeVar("T")
Query = tuple[int, int] | None
Label = str | int | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Exploration:
    """The result of one image in one model: the prediction, and every map on demand.

    It holds its preset, its input and its choices, so that any map can be computed at any time, whatever is cached.
    Maps are float32 ``[rows, cols]`` and hold the true values; only ``overlay`` rescales them. While a result is
    cached, all who ask for the same image and choices share it: copy its pictures and tensors before you change them.

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
    ) -> Exploration:
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
        return sequence.ranking(self.labels, self.probabilities, count)

    def attention(
        self, block: int = -1, head: int | None = None, query: Query = None, direction: Direction = "from"
    ) -> NDArray[np.float32]:
        """One map of attention; it does not depend on the class.

        Args:
            block: Block, from 0; negative from the end.
            head: From 0; None for the mean of all heads.
            query: (row, col) of a patch; None for the class token. Without one it is the mean of all tokens, and in the
                last block the query of attention pooling, if the head reads the tokens through one.
            direction: ``"from"``: what the query attends to. ``"to"``: which patches attend to it.

        Returns:
            float32 ``[rows, cols]``; over all tokens, prefix included, a ``"from"`` map sums to 1.

        Raises:
            InputError: If there is no such block, head, patch or direction.
        """
        return self.heatmap("attention", block=block, head=head, query=query, direction=direction)

    def rollout(self, query: Query = None) -> NDArray[np.float32]:
        """Attention rollout of one token (Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928).

        Args:
            query: As in ``attention``.

        Returns:
            float32 ``[rows, cols]``; over all tokens, prefix included, it sums to 1.

        Raises:
            InputError: If there is no such patch.
        """
        return self.heatmap("rollout", query=query)

    def relevance(self, label: Label = None) -> NDArray[np.float32]:
        """The evidence for a class in each patch, through the attention of all blocks and its gradients.

        Args:
            label: A label or its index; the predicted class for None.

        Returns:
            float32 ``[rows, cols]``, at least 0, in the unit of the logit.

        Raises:
            LabelError: If there is no such class.
        """
        return self.heatmap("relevance", label)

    heatmap = heatmaps.heatmap
    gradient = heatmaps.gradient
    attention_maps = heatmaps.attention_maps
    faithfulness = heatmaps.faithfulness
    with_labels = words.with_labels
    enough = smallest_sets.enough
    needed = smallest_sets.needed
    target = sequence.class_index

    overlay = figures.overlay
    side_by_side = figures.side_by_side
    to_dict = saved.to_dict
    save = saved.save

    # Of the tokens of the patches; one more forward pass.
    tokens = patch_features.tokens
    logit_lens = patch_features.logit_lens
    similarity = patch_features.similarity
    pca = patch_features.pca
    kmeans = patch_features.kmeans
    norms = patch_features.norms

    def drop_patches(self, patches: Iterable[tuple[int, int]]) -> Exploration:
        """The result with some patches dropped: they leave the sequence, and nothing replaces them.

        Every map keeps the whole grid and is 0 at a dropped patch, its true value. Dropping adds up:
        ``ex.drop_patches(a).drop_patches(b)`` drops both.

        Args:
            patches: (row, col) of each, from 0.

        Returns:
            A new result, or this one if all of them were dropped before.

        Raises:
            InputError: If there is no such patch, or none would be left.
        """
        dropped = tuple(sorted({*self.dropped, *(sequence.check_patch(self, patch) for patch in patches)}))
        if len(dropped) == self.grid[0] * self.grid[1]:
            raise InputError("At least one patch must stay.")
        if dropped == self.dropped:
            return self
        new = replace(self, dropped=dropped)
        logits, trace, seconds = new.run(forward_with_trace)
        return replace(new, logits=logits.numpy(), trace=trace, seconds=seconds)

    def randomization(
        self, method: str, label: Label = None, progress: Progress | None = None, *, against: Label = None
    ) -> list[float]:
        """Spearman correlations of a map while the weights are randomized from the head down.

        Args:
            method: Its name.
            label: As in ``heatmap``.
            progress: Called with the number of networks done and their total.
            against: As in ``heatmap``.

        Returns:
            ``depth + 2`` numbers in [-1, 1]: of the trained network (1), with a random head, then with one more random
            block each time.

        Raises:
            InputError: If there is no such method.
            LabelError: If there is no such class, or the model has none.
        """
        target = self.target(label)
        options = heatmaps.comparison(self, find_method(method), target, against)
        return self.run(metrics.randomization, target, method, slow=True, progress=progress, **options)

    def __repr__(self) -> str:
        found = "".join(f", {label} {as_text(score, self.preset.scores)}" for label, score in self.top(1))
        return f"<Exploration: {self.preset.name}, patches of {self.patch_size} px, grid {self.grid}{found}>"

    def _repr_html_(self) -> str | None:
        """The stage of the page, for notebooks: it reacts to the pointer and needs no server."""
        return inference.notebook_html and inference.notebook_html(self)

    to_html = saved.to_html

    @property
    def num_bytes(self) -> int:
        """Memory of this result: trace, input and pictures."""
        pictures = sum(p.width * p.height * len(p.getbands()) for p in (self.image, self.photo) if p is not None)
        return self.trace.num_bytes + self.pixels.nbytes + self.logits.nbytes + pictures

    def run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Runs a function on the network and this result's input, without the dropped patches; see ``RunOnModel``."""
        pixels, kept = self.pixels.detach(), sequence.kept_patches(self)  # a caller may want gradients of the input
        return self.run_on_model(function, pixels, *arguments, kept_patches=kept, **options)
