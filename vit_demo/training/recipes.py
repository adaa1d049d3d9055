"""How each bundled preset is trained: the sizes it must learn, at which rate, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one network is trained.

    Attributes:
        patch_weights: Each batch draws a patch size with these weights (FlexiViT); one size has weight 1.
        epochs: Passes over the training data.
        batch_size: Images a step.
        precision: Of the matrix products: ``"bf16"`` (where the device has it), or ``"fp32"``.
        optimiser: ``"adamw"`` with warm-up and a cosine to zero; ``"muon"``, the same with Muon for the matrices inside
            the blocks; or the notebook's plain ``"adam"`` at a fixed rate.
        learning_rate: Its peak.
        weight_decay: Of matrices; vectors are not decayed.
        warmup: Share of all steps over which the rate rises from zero.
        label_smoothing: Of the cross-entropy.
        drop_path: Share of residual branches skipped in the last block.
        ema: Decay of the moving average of the weights that is shipped; 0 for the last weights themselves.
        mix: Probability that a batch is mixed by MixUp or CutMix.
        augment: Whether training images are changed at random.
        least_change: How strongly digits are changed at least, as a share of the most; see ``augment_digits``.
        drawn: Digits of our own making added to the training data; see ``vit_demo.training.strokes``.
        not_digits: Drawings of no digit added to the training data; see ``vit_demo.training.not_digits``.
        not_photos: Pictures of nothing added to the training data; see ``vit_demo.training.not_photos``.
        teacher: Name of the recipe of a network to learn from, trained first.
        views: Crops of each photo about which a pretrained teacher is asked before; see ``vit_demo.training.answers``.
        distil: Weight of the teacher's answer beside the label's, in [0, 1].
        hint: Weight of the squared error of a guess at the teacher's features, each of deviation 1 (FitNets; Romero et
            al., 2014, https://arxiv.org/abs/1412.6550).
        patch_hint: Weight of that of a guess at what the teacher makes of each patch; see ``training.student``.
        keep: Share of the patches, drawn anew for each image, that a patch size is trained with; all where not named
            (PatchDropout; Liu et al., 2022, https://arxiv.org/abs/2208.07220).
        whole: Share of the epochs, the last ones, in which every patch is kept.
    """

    patch_weights: dict[int, float]
    epochs: int
    batch_size: int = 256
    precision: Literal["bf16", "fp32"] = "bf16"
    optimiser: Literal["adamw", "muon", "adam"] = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup: float = 0.05
    label_smoothing: float = 0.0
    drop_path: float = 0.0
    ema: float = 0.0
    mix: float = 0.0
    augment: bool = True
    least_change: float = 1.0
    drawn: int = 0
    not_digits: int = 0
    not_photos: int = 0
    teacher: str | None = None
    views: int = 0
    distil: float = 0.0
    hint: float = 0.0
    patch_hint: float = 0.0
    keep: dict[int, float] = field(default_factory=dict)
    whole: float = 0.2


def _notebook(patch_size: int) -> Recipe:
    """The notebook's own recipe, but that its cross-entropy is fed with logits."""
    return Recipe(
        patch_weights={patch_size: 1.0},
        epochs=5,
        batch_size=128,
        precision="fp32",
        optimiser="adam",
        learning_rate=5e-3,
        augment=False,
    )


_DIGITS = Recipe(
    # Small patches cost most (the work grows with the number of tokens) and learn from what the others learn.
    patch_weights={2: 0.08, 4: 0.34, 7: 0.28, 14: 0.3},
    keep={2: 0.5},
    epochs=40,
    batch_size=128,
    learning_rate=2e-3,
    ema=0.999,
    drawn=8000,
    not_digits=6000,
    teacher="digits-teacher",
    distil=0.7,
)

RECIPES: dict[str, Recipe] = {
    "digits-teacher": Recipe(
        patch_weights={28: 1.0}, epochs=8, batch_size=128, learning_rate=3e-3, ema=0.99, drawn=8000, not_digits=6000
    ),
    "digits-small": replace(_DIGITS, epochs=40, optimiser="muon", least_change=0.0),
    "digits-tiny": _DIGITS,
    "digits-notebook-4": _notebook(4),
    "digits-notebook-7": _notebook(7),
    "digits-notebook-14": _notebook(14),
    "photos-tiny": Recipe(
        # The largest patches leave the fewest tokens, and are the hardest to read with. Of the smaller ones as many are
        # kept as there are of them, 36, so that every size costs the same.
        patch_weights={10: 0.25, 12: 0.2, 15: 0.15, 20: 0.4},
        keep={10: 0.25, 12: 0.36, 15: 0.5625},
        whole=0.0,
        epochs=7,
        batch_size=128,
        optimiser="muon",
        learning_rate=8e-4,
        ema=0.999,
        mix=0.3,
        not_photos=1600,
        views=3,
        distil=0.9,
        hint=3.0,
        patch_hint=2.0,
    ),
}
"""The recipe of each file of weights in ``checkpoints/``, by its stem, and of the teacher."""
