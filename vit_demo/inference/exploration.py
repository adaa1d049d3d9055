"""What one image did to one model: everything that a page shows, and where every map comes from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from vit_demo import features, methods, metrics
from vit_demo.inference.traced import Label, Query, Traced
from vit_demo.model import Trace, ViT
from vit_demo.weights import find_preset

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
Baseline = Literal["mean", "blur", "black"]


class Ask(Protocol):
    """Runs a function beside the network of a result: ``job(model, *arguments, patch_size=..., **options)``.

    The job may run in another process, so it is a module's own function, and its arguments and results are small.
    """

    def __call__(self, job: Callable[..., T], /, *arguments: Any, **options: Any) -> T:
        """Gives back what the job gives, its tensors on the CPU."""


@torch.inference_mode()
def one_pass(model: ViT, pixels: Tensor, *, patch_size: int, keep: Tensor | None = None) -> tuple[Tensor, Trace, float]:
    """One image through the network: its logits ``[K]`` on the CPU, the trace, the seconds it took."""
    trace = Trace()
    started = time.perf_counter()
    logits = model(pixels, trace, patch_size=patch_size, keep=keep)[0].float().cpu()
    seconds = time.perf_counter() - started
    return logits[: model.config.num_classes], trace, seconds  # without classes there is only the pooled token


@dataclass(frozen=True, eq=False, kw_only=True)
class Exploration(Traced):
    """What one image did to one model: everything that a page shows, and where every map comes from.

    What follows from the trace alone stands in ``Traced``; here is what asks the network again.

    Attributes:
        ask: Runs what needs the network itself; a result does not hold it.
    """

    ask: Ask

    def value_weighted(self, layer: int = -1, query: Query = None) -> NDArray[np.float32]:
        """Attention times what it carries: the length of what each patch sends to one token through a block.

        Float32 ``[rows, cols]``, in the unit of the tokens; it does not depend on the class.
        """
        self._check(layer, None, query)
        return self._map(methods.value_weighted, layer, self._token(query))

    def relevance(self, label: Label = None) -> NDArray[np.float32]:
        """How much each patch speaks for a class, through the attention of all blocks and its gradients.

        Args:
            label: A label or its index; the predicted class for None.

        Returns:
            float32 ``[rows, cols]``, at least 0, in the unit of the logit.

        Raises:
            LabelError: If there is no such class.
        """
        return self._map(methods.relevance, self.target(label))

    def attnlrp(self, label: Label = None) -> NDArray[np.float32]:
        """What each patch contributed to a class's score, handed back layer by layer.

        Float32 ``[rows, cols]``, in the unit of the logit, below 0 where a patch speaks against the class. ``label`` as
        in ``relevance``.
        """
        return self._map(methods.attnlrp, self.target(label))

    def occlusion(
        self, label: Label = None, window: int = 1, progress: methods.Progress | None = None
    ) -> NDArray[np.float32]:
        """What the class's log-probability loses when the ``window`` x ``window`` patches round each one are dropped.

        Float32 ``[rows, cols]``, below 0 where the class gains. ``label`` as in ``relevance``.
        """
        return self._map(methods.occlusion, self.target(label), window=window, progress=progress)

    def patch_dropping(
        self, label: Label = None, budget: int = 384, seed: int = 0, progress: methods.Progress | None = None
    ) -> NDArray[np.float32]:
        """What each patch is worth to a class, from ``budget`` random quarters and halves of them; the slowest map.

        Float32 ``[rows, cols]``, below 0 where a patch speaks against the class. ``label`` as in ``relevance``.
        """
        target = self.target(label)
        return self._map(methods.patch_dropping, target, budget=budget, seed=seed, progress=progress)

    def heatmap(self, method: str, label: Label = None) -> NDArray[np.float32]:
        """The map ``[rows, cols]`` of a method by its name, one of ``methods.METHODS``, with its defaults.

        Raises:
            ValueError: If there is no such method.
            LabelError: If there is no such class.
        """
        chosen = methods.find_method(method)
        if label is not None:
            label = self.target(label)  # refused even where the map does not depend on it
        return getattr(self, method)(label) if chosen.class_specific else getattr(self, method)()

    def lens(self) -> list[list[tuple[str, float]]]:
        """What each depth would have said: before the first block, then after each, all (label, probability) pairs.

        Highest first, as ``top`` gives them.

        Raises:
            LabelError: If the model has no classes.
        """
        self.target(None)
        logits = self._ask(features.lens)[0]  # [blocks + 1, K]
        return [replace(self, logits=one.numpy()).top(len(self.labels)) for one in logits]

    def without(self, patches: Sequence[tuple[int, int]]) -> Exploration:
        """The result with some patches dropped: they leave the sequence, and nothing stands in for them.

        Every map keeps the whole grid and is 0 at a dropped patch, which is its true value: nothing looks at it and it
        looks nowhere. Dropping adds up: ``ex.without(a).without(b)`` drops both.

        Args:
            patches: (row, col) of each, from 0.

        Raises:
            ValueError: If there is no such patch, or none would be left.
        """
        for patch in patches:
            self._check_patch(patch)
        dropped = tuple(sorted({*self.dropped, *((int(row), int(col)) for row, col in patches)}))
        if len(dropped) == self.grid[0] * self.grid[1]:
            raise ValueError("At least one patch must stay.")
        if dropped == self.dropped:
            return self
        plain = self.key.split("-")[0]
        key = f"{plain}-{hashlib.sha256(repr(dropped).encode()).hexdigest()[:16]}"
        new = replace(self, dropped=dropped, key=key)
        logits, trace, seconds = new._ask(one_pass)
        return replace(new, logits=logits.numpy(), trace=trace, seconds=seconds)

    def faithfulness(
        self,
        method: str | NDArray[np.floating] = "rollout",
        steps: int = 14,
        label: Label = None,
        baseline: Baseline = "mean",
        seeds: int = 5,
        progress: methods.Progress | None = None,
    ) -> metrics.Faithfulness:
        """Puts a map to the test: deletion and insertion curves beside those of random orders.

        Args:
            method: One of ``methods.METHODS``, or a map ``[rows, cols]`` of your own.
            steps: How many times patches are replaced, or returned.
            label: Whose probability is watched, and whose map it is; the predicted class for None.
            baseline: What stands in for a patch: ``"mean"``, the colour that normalisation takes off (grey for
                photos); ``"blur"``, the picture without its details; or ``"black"``.
            seeds: How many random orders.
            progress: Told how many pictures were asked about, and of how many.

        Raises:
            ValueError: If there is no such method or baseline.
            LabelError: If there is no such class.
        """
        stand_in, target = self._baseline(baseline), self.target(label)
        values = np.asarray(self.heatmap(method, target) if isinstance(method, str) else method, np.float32)
        if values.shape != self.grid:
            raise ValueError(f"A map for this image has the shape {self.grid}, not {values.shape}.")
        options = {"steps": steps, "seeds": seeds, "progress": progress}
        return self._ask(metrics.faithfulness, target, torch.from_numpy(values), stand_in, **options)

    def randomisation(self, method: str, label: Label = None, progress: methods.Progress | None = None) -> list[float]:
        """How alike a map stays while the network forgets from its top to its bottom: Spearman correlations.

        Of the trained network (1), without its head, then without one more block each time; ``label`` as in
        ``relevance``.
        """
        return self._ask(metrics.randomisation, self.target(label), method, progress=progress)

    def _ask(self, job: Callable[..., T], *arguments: Any, **options: Any) -> T:
        return self.ask(job, self.pixels, *arguments, keep=self._keep(), **options)

    def _map(self, job: Callable[..., Tensor], *arguments: Any, **options: Any) -> NDArray[np.float32]:
        return self._ask(job, *arguments, **options)[0].numpy()

    def _baseline(self, name: str) -> Tensor:
        if name == "mean":
            return torch.zeros(1, 1, 1, 1)
        if name == "blur":
            return metrics.blurred(self.pixels, 4 * self.patch_size)
        if name == "black":
            preset = find_preset(self.preset)
            black = [-mean / std for mean, std in zip(preset.mean, preset.std, strict=True)]
            return torch.tensor(black).reshape(1, -1, 1, 1)
        raise ValueError(f"There is no baseline {name!r}: choose mean, blur or black.")
