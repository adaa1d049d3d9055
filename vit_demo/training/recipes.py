"""How each bundled preset is trained: patch sizes, data, objective, optimiser and schedule."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyperparameters of one network's training.

    Attributes:
        patch_size_weights: Patch sizes and the relative frequency with which a batch uses each (FlexiViT; Beyer et al.,
            2022, https://arxiv.org/abs/2212.08013).
        epochs: Number of passes over the training data.
        batch_size: Images per step, over all processes.
        precision: Of the forward pass: ``"bf16"`` mixed precision (float32 on MPS) or ``"fp32"``.
        optimiser: ``"adamw"`` with warm-up and cosine decay; ``"muon"``, the same with Muon for the matrices inside the
            blocks; or plain ``"adam"`` at a constant learning rate, as in the notebook.
        learning_rate: Its peak.
        weight_decay: Applied to matrices only.
        warmup: Fraction of all steps over which the learning rate rises linearly.
        label_smoothing: Of the cross-entropy.
        drop_path: Stochastic depth rate of the last block; it grows linearly from 0 in the first.
        ema_decay: Decay of the moving average of the weights, which is what gets exported; 0 to export the last
            weights.
        mix_probability: Probability that MixUp or CutMix is applied to a batch.
        augment: Whether training images are augmented.
        min_augment_strength: The strength of each digit's augmentation is drawn from between this and 1; see
            ``augment_digits``.
        synthetic_digits: Number of drawn digits added to the training data; see ``vit_demo.training.synthetic_digits``.
        digit_outliers: Number of drawings of other things added; see ``vit_demo.training.digit_outliers``.
        photo_outliers: Number of generated pictures added; see ``vit_demo.training.photo_outliers``.
        teacher_recipe: Name of the recipe of a teacher that is trained first and then evaluated on every batch.
        teacher_image_size: Side in pixels at which a pretrained teacher sees every batch; 0 for no such teacher. See
            ``vit_demo.training.pretrained_teacher``.
        distillation_weight: Weight of the teacher's probabilities in the targets, in [0, 1]; the rest is the label's.
        feature_loss_weight: Weight of the squared error of the predicted teacher features (FitNets; Romero et al.,
            2014, https://arxiv.org/abs/1412.6550).
        patch_loss_weight: Weight of the squared error of the predicted teacher features of each patch; see
            ``vit_demo.training.student``.
        patch_keep_rates: For some patch sizes, the fraction of randomly chosen patches that each image keeps; 1 for
            sizes not listed (PatchDropout; Liu et al., 2022, https://arxiv.org/abs/2208.07220).
        full_sequence_fraction: Fraction of the epochs, at the end of the run, in which all patches are kept.
    """

    patch_size_weights: dict[int, float]
    epochs: int
    batch_size: int = 256
    precision: Literal["bf16", "fp32"] = "bf16"
    optimiser: Literal["adamw", "muon", "adam"] = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup: float = 0.05
    label_smoothing: float = 0.0
    drop_path: float = 0.0
    ema_decay: float = 0.0
    mix_probability: float = 0.0
    augment: bool = True
    min_augment_strength: float = 1.0
    synthetic_digits: int = 0
    digit_outliers: int = 0
    photo_outliers: int = 0
    teacher_recipe: str | None = None
    teacher_image_size: int = 0
    distillation_weight: float = 0.0
    feature_loss_weight: float = 0.0
    patch_loss_weight: float = 0.0
    patch_keep_rates: dict[int, float] = field(default_factory=dict)
    full_sequence_fraction: float = 0.2

    @property
    def patch_sizes(self) -> tuple[int, ...]:
        """The patch sizes that are trained, in pixels."""
        return tuple(self.patch_size_weights)


def _notebook(patch_size: int) -> Recipe:
    """The notebook's own recipe, except that its cross-entropy receives logits instead of probabilities."""
    return Recipe(
        patch_size_weights={patch_size: 1.0},
        epochs=5,
        batch_size=128,
        precision="fp32",
        optimiser="adam",
        learning_rate=5e-3,
        augment=False,
    )


_DIGITS = Recipe(
    # Small patches cost most, because the work grows with the number of tokens, and profit from the other sizes.
    patch_size_weights={2: 0.08, 4: 0.34, 7: 0.28, 14: 0.3},
    patch_keep_rates={2: 0.5},
    epochs=40,
    batch_size=128,
    learning_rate=2e-3,
    ema_decay=0.999,
    synthetic_digits=10_000,
    digit_outliers=6000,
    teacher_recipe="digits-teacher",
    distillation_weight=0.7,
)

RECIPES: dict[str, Recipe] = {
    "digits-teacher": Recipe(
        patch_size_weights={28: 1.0},
        epochs=8,
        batch_size=128,
        learning_rate=3e-3,
        ema_decay=0.99,
        synthetic_digits=10_000,
        digit_outliers=6000,
    ),
    "digits-small": replace(_DIGITS, optimiser="muon", min_augment_strength=0.0),
    "digits-tiny": _DIGITS,
    "digits-notebook-4": _notebook(4),
    "digits-notebook-7": _notebook(7),
    "digits-notebook-14": _notebook(14),
    "photos-tiny": Recipe(
        # The largest patches leave the fewest tokens, and their accuracy lags behind.
        patch_size_weights={10: 0.25, 12: 0.25, 15: 0.2, 20: 0.3},
        # About 50 patches of the smaller sizes, so that they cost little more than the 36 of the largest.
        patch_keep_rates={10: 0.4, 12: 0.55, 15: 0.75},
        full_sequence_fraction=0.15,
        epochs=16,
        batch_size=128,
        optimiser="muon",
        learning_rate=6e-4,
        ema_decay=0.999,
        mix_probability=0.8,
        photo_outliers=1600,
        # The side of the stored photos, which gives the teacher half the tokens of 224 pixels.
        teacher_image_size=160,
        distillation_weight=0.9,
        feature_loss_weight=3.0,
        patch_loss_weight=2.0,
    ),
}
"""The recipes by the stem of their file in ``checkpoints/``, and that of the digits' teacher. A file may be older than
its recipe; its header holds the one that it was trained with."""
