"""How each bundled preset is trained: the sizes it must learn, at which rate, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one network is trained.

    Attributes:
        patch_weights: Each batch draws a patch size with these weights (FlexiViT); one size has weight 1.
        epochs: Passes over the training data.
        batch_size: Images a step.
        optimiser: ``"adamw"`` with warm-up and a cosine to zero, or the notebook's plain ``"adam"`` at a fixed rate.
        learning_rate: Its peak.
        weight_decay: Of matrices; vectors are not decayed.
        warmup: Share of all steps over which the rate rises from zero.
        label_smoothing: Of the cross-entropy.
        drop_path: Share of residual branches skipped in the last block.
        ema: Decay of the moving average of the weights that is shipped; 0 for the last weights themselves.
        mix: Probability that a batch is mixed by MixUp or CutMix.
        augment: Whether training images are changed at random.
        drawn: Digits of our own making added to the training data; see ``vit_demo.train.strokes``.
    """

    patch_weights: dict[int, float]
    epochs: int
    batch_size: int = 256
    optimiser: Literal["adamw", "adam"] = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup: float = 0.05
    label_smoothing: float = 0.0
    drop_path: float = 0.0
    ema: float = 0.0
    mix: float = 0.0
    augment: bool = True
    drawn: int = 0


def _notebook(patch_size: int) -> Recipe:
    """The notebook's own recipe, but that its cross-entropy is fed with logits."""
    return Recipe(
        patch_weights={patch_size: 1.0},
        epochs=5,
        batch_size=128,
        optimiser="adam",
        learning_rate=5e-3,
        augment=False,
    )


# Small patches cost most (the work grows with the number of tokens) and learn from what the others learn.
_DIGIT_SIZES = {2: 0.12, 4: 0.34, 7: 0.26, 14: 0.28}

RECIPES: dict[str, Recipe] = {
    "digits-notebook-4": _notebook(4),
    "digits-notebook-7": _notebook(7),
    "digits-notebook-14": _notebook(14),
    "digits-tiny": Recipe(
        patch_weights=_DIGIT_SIZES, epochs=24, batch_size=128, learning_rate=2e-3, ema=0.999, drawn=3400
    ),
    "photos-tiny": Recipe(
        patch_weights={8: 0.15, 12: 0.3, 16: 0.3, 24: 0.25},
        epochs=11,
        batch_size=128,
        label_smoothing=0.1,
        ema=0.999,
    ),
}
"""The recipe of each file of weights in ``checkpoints/``, by its stem."""
