"""The result of one image in one model: the prediction, and every map on demand."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo import features, images, metrics, render
from vit_demo.errors import InputError, LabelError
from vit_demo.inference.forward import RunOnModel, forward_with_trace
from vit_demo.inference.inputs import DISPLAY_SIZE, Fit
from vit_demo.methods import Progress, attention_from, find_method, to_grid
from vit_demo.model import Trace
from vit_demo.weights import Preset

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
Direction = Literal["from", "to"]
Query = tuple[int, int] | None
Label = str | int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Exploration:
    """The result of one image in one model: the prediction, and every map on demand.

    It holds its preset, its input and its choices, so that any map can be computed at any time, whatever is cached.
    Maps are float32 ``[rows, cols]`` and hold the true values; only ``overlay`` rescales them.

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
    dropped: tuple[tuple[int, int], ...] = ()
    run_on_model: RunOnModel

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each logit."""
        return self.preset.labels

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Softmax of the logits, ``[K]``, summing to 1."""
        return torch.from_numpy(self.logits).softmax(0).numpy()

    @property
    def is_sure(self) -> bool:
        """Whether the prediction reaches the preset's ``confidence_threshold``; False without classes."""
        return bool(self.probabilities.max(initial=0) >= self.preset.confidence_threshold)

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The most probable labels with their probabilities, highest first; empty for a model without classes."""
        return _top(self.labels, self.probabilities, count)

    def attention(
        self, layer: int = -1, head: int | None = None, query: Query = None, direction: Direction = "from"
    ) -> NDArray[np.float32]:
        """One map of attention; it does not depend on the class.

        Args:
            layer: Block, from 0; negative from the end.
            head: From 0; None for the mean of all heads.
            query: (row, col) of a patch; None for the class token, or the mean of all tokens where there is none.
            direction: ``"from"``: what the query attends to. ``"to"``: which patches attend to it.

        Returns:
            float32 ``[rows, cols]``; over all tokens, prefix included, a ``"from"`` map sums to 1.

        Raises:
            InputError: If there is no such block, head, patch or direction.
        """
        return self.heatmap("attention", layer=layer, head=head, query=query, direction=direction)

    def attention_maps(self, query: Query = None) -> NDArray[np.float32]:
        """What one token attends to in every block and head: float32 ``[blocks, heads, rows, cols]``."""
        token, blocks = self._token(-1, None, query), range(self.trace.num_blocks)
        values = torch.stack([attention_from(self.trace, layer, token)[0] for layer in blocks])
        return to_grid(values, self.trace).cpu().numpy()

    def rollout(self, query: Query = None) -> NDArray[np.float32]:
        """Attention rollout of one token; over all tokens, prefix included, it sums to 1."""
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

    def heatmap(
        self, method: str, label: Label = None, progress: Progress | None = None, **options: Any
    ) -> NDArray[np.float32]:
        """The map of any registered method; see ``vit_demo.methods()``.

        Args:
            method: Its name.
            label: A label or its index, for a method that depends on the class; the predicted class for None.
            progress: Called with the passes done and their total, for a method that takes many.
            **options: The method's own, such as ``layer``, ``query``, ``window`` or ``budget``.

        Returns:
            float32 ``[rows, cols]``, in the method's unit.

        Raises:
            InputError: If there is no such method, it has no such option, or a value is out of range.
            LabelError: If there is no such class.
        """
        chosen = find_method(method)
        chosen.check_options(options)
        # An unknown class is refused even if the map does not depend on it.
        target = self.target(label) if chosen.class_specific or label is not None else None
        token = self._token(options.get("layer", -1), options.get("head"), options.get("query"))
        if chosen.offers("query"):
            options["query"] = token
        if chosen.cost == "trace":
            return to_grid(chosen.function(self.trace, **options), self.trace)[0].cpu().numpy()
        if chosen.reports_progress:
            options["progress"] = progress
        arguments = (self.pixels, target) if chosen.class_specific else (self.pixels,)
        options["kept_patches"] = self._kept_patches()
        return self.run_on_model(chosen.function, *arguments, slow=chosen.is_slow, **options)[0].numpy()

    def logit_lens(self) -> list[list[tuple[str, float]]]:
        """The prediction before the first block and after each: all (label, probability) pairs, highest first.

        Raises:
            LabelError: If the model has no classes.
        """
        self.target(None)
        logits = self._run(features.logit_lens)[0]  # [blocks + 1, K]
        return [_top(self.labels, row, len(self.labels)) for row in logits.softmax(1).numpy()]

    def drop_patches(self, patches: Sequence[tuple[int, int]]) -> Exploration:
        """The result with some patches dropped: they leave the sequence, and nothing replaces them.

        Every map keeps the whole grid and is 0 at a dropped patch, its true value. Dropping adds up:
        ``ex.drop_patches(a).drop_patches(b)`` drops both.

        Args:
            patches: (row, col) of each, from 0.

        Raises:
            InputError: If there is no such patch, or none would be left.
        """
        for patch in patches:
            self._check_patch(patch)
        dropped = tuple(sorted({*self.dropped, *((int(row), int(col)) for row, col in patches)}))
        if len(dropped) == self.grid[0] * self.grid[1]:
            raise InputError("At least one patch must stay.")
        if dropped == self.dropped:
            return self
        new = replace(self, dropped=dropped)
        logits, trace, seconds = new._run(forward_with_trace)
        return replace(new, logits=logits.numpy(), trace=trace, seconds=seconds)

    def faithfulness(
        self,
        method: str | NDArray[np.floating] = "rollout",
        steps: int = 14,
        label: Label = None,
        baseline: metrics.Baseline = "mean",
        seeds: int = 5,
        progress: Progress | None = None,
    ) -> metrics.Faithfulness:
        """Tests a map: its deletion and insertion curves beside those of random orders.

        Args:
            method: Name of a method, or a map ``[rows, cols]`` of your own.
            steps: How many times patches are replaced, or returned.
            label: Whose probability is measured, and whose map it is; the predicted class for None.
            baseline: What replaces a patch: ``"mean"``, the colour that normalization maps to 0; ``"blur"``, the
                picture without its details; or ``"black"``.
            seeds: How many random orders.
            progress: Called with the number of pictures done and their total.

        Raises:
            InputError: If there is no such method or baseline.
            LabelError: If there is no such class.
        """
        target = self.target(label)
        replacement = metrics.baseline_image(baseline, self.pixels, self.patch_size, self.preset.mean, self.preset.std)
        values = np.asarray(self.heatmap(method, target) if isinstance(method, str) else method, np.float32)
        if values.shape != self.grid:
            raise InputError(f"A map for this image has the shape {self.grid}, not {values.shape}.")
        options: dict[str, Any] = {"steps": steps, "seeds": seeds, "progress": progress}
        return self._run(metrics.faithfulness, target, torch.from_numpy(values), replacement, slow=True, **options)

    def randomization(self, method: str, label: Label = None, progress: Progress | None = None) -> list[float]:
        """How similar a map stays while the weights are randomized from the head down: Spearman correlations.

        Of the trained network (1), without its head, then without one more block each time; ``label`` as in
        ``relevance``.
        """
        find_method(method)
        return self._run(metrics.randomization, self.target(label), method, slow=True, progress=progress)

    def target(self, label: Label = None) -> int:
        """The index of a class by its label or index; of the predicted class for None.

        Raises:
            LabelError: If there is no such class.
        """
        name = self.preset.name
        if not self.preset.config.num_classes:
            raise LabelError(f"{name} has no classes, so no map of it can be about one.")
        if label is None:
            return int(self.logits.argmax())
        if isinstance(label, str):
            if label in self.labels:
                return self.labels.index(label)
        elif 0 <= operator.index(label) < len(self.labels):
            return operator.index(label)
        raise LabelError(f"{name} has no class {label!r}: choose one of its {len(self.labels)} labels.")

    def overlay(self, values: NDArray[np.floating], alpha: float = 0.6) -> Image.Image:
        """A map over the picture, scaled to its own maximum for show, as an RGB image at display size.

        Args:
            values: ``[rows, cols]``; what is below 0 shows as 0.
            alpha: Opacity of the brightest patch, in [0, 1].
        """
        return render.overlay(self.image, values, alpha=alpha, display_size=DISPLAY_SIZE)

    @property
    def num_bytes(self) -> int:
        """Memory of this result: trace, input and pictures."""
        pictures = sum(p.width * p.height * len(p.getbands()) for p in (self.image, self.photo) if p is not None)
        return self.trace.num_bytes + self.pixels.nbytes + self.logits.nbytes + pictures

    def _run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        return self.run_on_model(function, self.pixels, *arguments, kept_patches=self._kept_patches(), **options)

    def _kept_patches(self) -> Tensor | None:
        """The patches of the sequence ``[1, K]``, counted row by row; None for all."""
        if not self.dropped:
            return None
        gone = {row * self.grid[1] + col for row, col in self.dropped}
        return torch.tensor([[i for i in range(self.grid[0] * self.grid[1]) if i not in gone]])

    def _token(self, layer: int, head: int | None, query: Query) -> int | None:
        """The index of the query in the sequence, once layer, head and query are checked."""
        blocks, heads = self.trace.num_blocks, self.trace.num_heads
        if not -blocks <= layer < blocks:
            raise InputError(f"There is no block {layer}: this model has {blocks}, counted from 0.")
        if head is not None and not 0 <= head < heads:
            raise InputError(f"There is no head {head}: this model has {heads}, counted from 0.")
        if query is None:
            return 0 if self.preset.config.class_token else None
        self._check_patch(query)
        if tuple(query) in self.dropped:
            raise InputError(f"The patch {tuple(query)} was dropped, so it has no attention.")
        patch, kept_patches = query[0] * self.grid[1] + query[1], self._kept_patches()
        return self.trace.num_prefix_tokens + (patch if kept_patches is None else kept_patches[0].tolist().index(patch))

    def _check_patch(self, patch: tuple[int, int]) -> None:
        (rows, cols), (row, col) = self.grid, patch
        if not (0 <= row < rows and 0 <= col < cols):
            raise InputError(f"There is no patch {tuple(patch)}: the grid has {rows} rows and {cols} columns.")


def _top(labels: Sequence[str], probabilities: NDArray[np.float32], count: int) -> list[tuple[str, float]]:
    order = np.argsort(-probabilities, kind="stable")[:count]
    return [(labels[i], float(probabilities[i])) for i in order]
