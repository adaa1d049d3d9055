"""What one image did to one model: everything that a page shows, and where every map comes from."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo import features, images, methods, metrics, render
from vit_demo.errors import InputError, LabelError
from vit_demo.inference.inputs import DISPLAY_SIZE, Fit
from vit_demo.inference.passes import RunOnModel, forward_with_trace
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
    """What one image did to one model: everything that a page shows, and where every map comes from.

    It holds its preset, its input and its choices, so that any map can be made at any time, whatever else is cached.
    Maps are float32 ``[rows, cols]`` and hold the true values; only ``overlay`` rescales them.

    Attributes:
        preset: The model.
        patch_size: In pixels of the network's input.
        fit: How a photo became the input: ``"crop"``, ``"squash"`` or ``"keep"``.
        grid: Rows and columns of patches.
        logits: float32 ``[K]``; empty for a model without classes.
        trace: q, k, v of every block, on the device that ran the pass.
        image: The picture exactly as the model saw it: 28 x 28 grey for digits, RGB at display size for photos.
        photo: The whole upright photo, made small; None for a drawing.
        geometry: Which part of the source ``image`` is.
        pixels: The network's input, float32 ``[1, C, height, width]``, normalised.
        seconds: Time of the forward pass.
        device: Where it ran.
        dropped: The patches that were left out of the sequence; see ``drop_patches``.
        run_on_model: Runs what needs the network itself, which a result does not hold.
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
        """Whether the prediction is probable enough to be stated plainly; never, where there are no classes."""
        return bool(self.probabilities.max(initial=0) >= self.preset.confidence_threshold)

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The likeliest labels with their probabilities, highest first; none for a model without classes."""
        return _top(self.labels, self.probabilities, count)

    def attention(
        self, layer: int = -1, head: int | None = None, query: Query = None, direction: Direction = "from"
    ) -> NDArray[np.float32]:
        """One map of attention; it does not depend on the class.

        Args:
            layer: Block, from 0; negative from the end.
            head: From 0; None for the mean of all heads.
            query: (row, col) of a patch; None for the class token, or the mean of all tokens where there is none.
            direction: ``"from"``: where the query looks. ``"to"``: which patches look at it.

        Returns:
            float32 ``[rows, cols]``; over all tokens, prefix included, a ``"from"`` map sums to 1.

        Raises:
            InputError: If there is no such block, head, patch or direction.
        """
        token = self._token(layer, head, query)
        if direction not in ("from", "to"):
            raise InputError(f'There is no direction {direction!r}: choose "from" or "to".')
        compute = methods.attention_from if direction == "from" else methods.attention_to
        values = compute(self.trace, layer, token)
        values = values[0].mean(0) if head is None else values[0, head]  # [B, H, N] -> [N]
        return methods.to_grid(values, self.trace).cpu().numpy()

    def attention_maps(self, query: Query = None) -> NDArray[np.float32]:
        """Where one token looks in every block and head: float32 ``[blocks, heads, rows, cols]``."""
        token, blocks = self._token(-1, None, query), range(self.trace.num_blocks)
        values = torch.stack([methods.attention_from(self.trace, layer, token)[0] for layer in blocks])
        return methods.to_grid(values, self.trace).cpu().numpy()

    def rollout(self, query: Query = None) -> NDArray[np.float32]:
        """Attention rollout of one token; over all tokens, prefix included, it sums to 1."""
        values = methods.rollout(self.trace, self._token(-1, None, query))[0]
        return methods.to_grid(values, self.trace).cpu().numpy()

    def value_weighted(self, layer: int = -1, query: Query = None) -> NDArray[np.float32]:
        """The length of what each patch sends to one token through a block, in the unit of the tokens."""
        return self._map(methods.value_weighted, layer, self._token(layer, None, query))

    def relevance(self, label: Label = None) -> NDArray[np.float32]:
        """The evidence for a class in each patch, through the attention of all blocks and its gradients.

        Args:
            label: A label or its index; the predicted class for None.

        Returns:
            float32 ``[rows, cols]``, at least 0, in the unit of the logit.

        Raises:
            LabelError: If there is no such class.
        """
        return self._map(methods.relevance, self.target(label))

    def heatmap(self, method: str, label: Label = None, **options: Any) -> NDArray[np.float32]:
        """The map of a method by its name, one of ``methods.METHODS``.

        Args:
            method: The name.
            label: A label or its index, where the method depends on the class; the predicted class for None.
            **options: The method's own, such as ``layer``, ``query``, ``window`` or ``budget``.

        Raises:
            InputError: If there is no such method, or it has no such option.
            LabelError: If there is no such class.
        """
        chosen = methods.find_method(method)
        target = None if label is None else self.target(label)  # refused even where the map does not depend on it
        compute: Callable[..., Any] = chosen.compute if chosen.class_specific else getattr(self, method)
        unknown = options.keys() - inspect.signature(compute).parameters.keys()
        if unknown:
            raise InputError(f"{method} has no option {min(unknown)!r}: see its documentation.")
        if not chosen.class_specific:
            return compute(**options)
        return self._map(compute, self.target(target), slow=chosen.many_passes, **options)

    def logit_lens(self) -> list[list[tuple[str, float]]]:
        """The prediction before the first block and after each: all (label, probability) pairs, highest first.

        Raises:
            LabelError: If the model has no classes.
        """
        self.target(None)
        logits = self._run(features.lens)[0]  # [blocks + 1, K]
        return [_top(self.labels, row, len(self.labels)) for row in logits.softmax(1).numpy()]

    def drop_patches(self, patches: Sequence[tuple[int, int]]) -> Exploration:
        """The result with some patches dropped: they leave the sequence, and nothing stands in for them.

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
        progress: methods.Progress | None = None,
    ) -> metrics.Faithfulness:
        """Tests a map: its deletion and insertion curves beside those of random orders.

        Args:
            method: One of ``methods.METHODS``, or a map ``[rows, cols]`` of your own.
            steps: How many times patches are replaced, or returned.
            label: Whose probability is measured, and whose map it is; the predicted class for None.
            baseline: What replaces a patch: ``"mean"``, the colour that normalization maps to 0; ``"blur"``, the
                picture without its details; or ``"black"``.
            seeds: How many random orders.
            progress: Told how many pictures are done, and of how many.

        Raises:
            InputError: If there is no such method or baseline.
            LabelError: If there is no such class.
        """
        target = self.target(label)
        replacement = metrics.replacement(baseline, self.pixels, self.patch_size, self.preset.mean, self.preset.std)
        values = np.asarray(self.heatmap(method, target) if isinstance(method, str) else method, np.float32)
        if values.shape != self.grid:
            raise InputError(f"A map for this image has the shape {self.grid}, not {values.shape}.")
        options: dict[str, Any] = {"steps": steps, "seeds": seeds, "progress": progress}
        return self._run(metrics.faithfulness, target, torch.from_numpy(values), replacement, slow=True, **options)

    def randomization(self, method: str, label: Label = None, progress: methods.Progress | None = None) -> list[float]:
        """How similar a map stays while the weights are randomized from the head down: Spearman correlations.

        Of the trained network (1), without its head, then without one more block each time; ``label`` as in
        ``relevance``.
        """
        methods.find_method(method)
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
        """What this result holds in memory: trace, input and pictures."""
        pictures = sum(p.width * p.height * len(p.getbands()) for p in (self.image, self.photo) if p is not None)
        return self.trace.num_bytes + self.pixels.nbytes + self.logits.nbytes + pictures

    def _run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        return self.run_on_model(function, self.pixels, *arguments, keep=self._keep(), **options)

    def _map(self, function: Callable[..., Tensor], *arguments: Any, **options: Any) -> NDArray[np.float32]:
        return self._run(function, *arguments, **options)[0].numpy()

    def _keep(self) -> Tensor | None:
        """The patches of the sequence ``[1, K]``, counted row by row; None for all."""
        if not self.dropped:
            return None
        gone = {row * self.grid[1] + col for row, col in self.dropped}
        return torch.tensor([[i for i in range(self.grid[0] * self.grid[1]) if i not in gone]])

    def _token(self, layer: int, head: int | None, query: Query) -> int | None:
        """The place of the query in the sequence, once it and the rest are known to be there."""
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
        patch, keep = query[0] * self.grid[1] + query[1], self._keep()
        return self.trace.num_prefix + (patch if keep is None else keep[0].tolist().index(patch))

    def _check_patch(self, patch: tuple[int, int]) -> None:
        (rows, cols), (row, col) = self.grid, patch
        if not (0 <= row < rows and 0 <= col < cols):
            raise InputError(f"There is no patch {tuple(patch)}: the grid has {rows} rows and {cols} columns.")


def _top(labels: Sequence[str], probabilities: NDArray[np.float32], count: int) -> list[tuple[str, float]]:
    order = np.argsort(-probabilities, kind="stable")[:count]
    return [(labels[i], float(probabilities[i])) for i in order]
