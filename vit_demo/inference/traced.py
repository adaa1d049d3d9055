"""What one pass of one image left behind, and every map that follows from that without the network."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo import images, methods, render
from vit_demo.errors import LabelError
from vit_demo.model import Trace
from vit_demo.weights import find_preset

if TYPE_CHECKING:
    from numpy.typing import NDArray

Direction = Literal["from", "to"]
Query = tuple[int, int] | None
Label = str | int | None

DISPLAY_SIZE = 448
"""Longest side, in pixels, of the picture that a photo's maps are laid over."""

THUMBNAIL_SIZE = 192
"""Longest side, in pixels, of the whole photo, which shows what part of it was seen."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Traced:
    """What one image did to one model: everything that the page shows, and where every map comes from.

    Attributes:
        preset: Name of the preset.
        patch_size: In pixels of the network's input.
        grid: Rows and columns of patches.
        logits: float32 ``[K]``; empty for a model without classes.
        labels: The name of each logit.
        trace: q, k, v of every block, on the device that ran the pass.
        image: The picture exactly as the model saw it: 28 x 28 grey for digits, RGB at display size for photos.
        geometry: Which part of the source that is.
        seconds: Time of the forward pass.
        device: Where it ran.
        key: Stands for (image, preset, patch size, fit, dropped); equal keys have equal results.
        pixels: The network's input, float32 ``[1, C, height, width]``, normalised.
        photo: The whole upright photo, made small; None for a drawing.
        dropped: The patches that were left out of the sequence; see ``without``.
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
    pixels: Tensor
    photo: Image.Image | None = None
    dropped: tuple[tuple[int, int], ...] = ()

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Softmax of the logits, ``[K]``, summing to 1."""
        return torch.from_numpy(self.logits).softmax(0).numpy()

    @property
    def is_sure(self) -> bool:
        """Whether the first answer is probable enough to be said plainly; never, where there are no classes."""
        return bool(self.probabilities.max(initial=0) >= find_preset(self.preset).sure)

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The likeliest labels with their probabilities, highest first; none for a model without classes."""
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
        look = methods.attention_from if direction == "from" else methods.attention_to
        values = look(self.trace, layer, self._token(query))
        values = values[0].mean(0) if head is None else values[0, head]  # [B, H, N] -> [N]
        return methods.to_grid(values, self.trace).cpu().numpy()

    def attention_maps(self, query: Query = None) -> NDArray[np.float32]:
        """Where one token looks in every block and head: float32 ``[blocks, heads, rows, cols]``."""
        self._check(-1, None, query)
        token, blocks = self._token(query), range(self.trace.num_blocks)
        values = torch.stack([methods.attention_from(self.trace, layer, token)[0] for layer in blocks])
        return methods.to_grid(values, self.trace).cpu().numpy()

    def rollout(self, query: Query = None) -> NDArray[np.float32]:
        """Attention rollout of one token, float32 ``[rows, cols]``; it does not depend on the class.

        Over all tokens, prefix included, it sums to 1.
        """
        self._check(-1, None, query)
        values = methods.rollout(self.trace, self._token(query))[0]
        return methods.to_grid(values, self.trace).cpu().numpy()

    def target(self, label: Label = None) -> int:
        """The index of a class by its label or index; of the predicted class for None.

        Raises:
            LabelError: If there is no such class.
        """
        if not find_preset(self.preset).config.num_classes:
            raise LabelError(f"{self.preset} has no classes, so no map of it can be about one.")
        if label is None:
            return int(self.logits.argmax())
        if isinstance(label, str):
            if label in self.labels:
                return self.labels.index(label)
        elif 0 <= operator.index(label) < len(self.labels):
            return operator.index(label)
        raise LabelError(f"{self.preset} has no class {label!r}: choose one of its {len(self.labels)} labels.")

    def overlay(self, values: NDArray[np.floating], alpha: float = 0.6) -> Image.Image:
        """A map over the picture, scaled to its own maximum for show, as an RGB image at display size.

        Args:
            values: ``[rows, cols]``; what is below 0 shows as 0.
            alpha: Opacity of the brightest patch, in [0, 1].
        """
        return render.overlay(self.image, values, alpha=alpha, display_size=DISPLAY_SIZE)

    def _keep(self) -> Tensor | None:
        """The patches of the sequence ``[1, K]``, counted row by row; None for all."""
        if not self.dropped:
            return None
        gone = {row * self.grid[1] + col for row, col in self.dropped}
        return torch.tensor([[i for i in range(self.grid[0] * self.grid[1]) if i not in gone]])

    def _token(self, query: Query) -> int | None:
        if query is None:
            return 0 if find_preset(self.preset).config.class_token else None
        patch = query[0] * self.grid[1] + query[1]
        keep = self._keep()
        place = patch if keep is None else keep[0].tolist().index(patch)
        return self.trace.num_prefix + place

    def _check(self, layer: int, head: int | None, query: Query) -> None:
        blocks, heads = self.trace.num_blocks, self.trace.num_heads
        if not -blocks <= layer < blocks:
            raise ValueError(f"There is no block {layer}: this model has {blocks}, counted from 0.")
        if head is not None and not 0 <= head < heads:
            raise ValueError(f"There is no head {head}: this model has {heads}, counted from 0.")
        if query is not None:
            self._check_patch(query)
            if tuple(query) in self.dropped:
                raise ValueError(f"The patch {tuple(query)} was dropped: it looks nowhere.")

    def _check_patch(self, patch: tuple[int, int]) -> None:
        (rows, cols), (row, col) = self.grid, patch
        if not (0 <= row < rows and 0 <= col < cols):
            raise ValueError(f"There is no patch {tuple(patch)}: the grid has {rows} rows and {cols} columns.")
