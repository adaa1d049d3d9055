"""The result of one image in one model: the prediction, and every map on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_demo import inference, metrics
from vit_demo.defaults import Direction
from vit_demo.errors import InputError
from vit_demo.inference import figures, heads, heatmaps, patch_features, saved, sequence, smallest_sets, words
from vit_demo.inference.result import Label, Query, Result
from vit_demo.methods import Progress, find_method
from vit_demo.scores import as_text


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Exploration(Result):
    """The result of one image in one model: the prediction, and every map on demand.

    It holds its preset, its input and its choices, so that any map can be computed at any time, whatever is cached.
    Maps are float32 ``[rows, cols]`` and hold the true values; only ``overlay`` rescales them. While a result is
    cached, all who ask for the same image and choices share it: copy its pictures and tensors before you change them.
    Its attributes are those of ``vit_demo.inference.result.Result``.
    """

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

    without = heads.without
    with_tokens = heads.with_tokens
    head_effects = heads.head_effects
    enough_heads = heads.enough_heads
    contributions = heads.parts_of_logit

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
        more = {sequence.check_patch(self.grid, patch) for patch in sequence.listed(patches)}
        dropped = tuple(sorted({*self.dropped, *more}))
        if len(dropped) == self.grid[0] * self.grid[1]:
            raise InputError("At least one patch must stay.")
        if dropped == self.dropped:
            return self
        return self.again(dropped=dropped)

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
