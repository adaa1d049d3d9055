"""How each bundled preset is trained: patch sizes, data, teacher, optimiser and schedule."""

from dataclasses import dataclass, field, replace

from vit_demo.errors import PresetError
from vit_demo.weights import PRESETS, Preset


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyperparameters of one network's training.

    Attributes:
        patch_size_weights: Patch sizes and the relative frequency with which a batch uses each (FlexiViT; Beyer et al.,
            2022, https://arxiv.org/abs/2212.08013).
        epochs: Number of passes over the training data.
        batch_size: Images per step.
        bf16: Whether the forward pass runs in mixed precision.
        optimiser: Its name in ``timm.optim``.
        learning_rate: The peak of a warm-up over the first twentieth of all steps and a cosine decay.
        constant_rate: Whether the learning rate stays the same instead, as in the notebook.
        weight_decay: Applied to matrices only.
        ema_decay: Decay of the moving average of the weights, which is what gets exported; 0 to export the last
            weights.
        augment: Whether training images are augmented.
        mix_probability: Probability that MixUp or CutMix is applied to a batch.
        synthetic_digits: Number of drawn digits added to the training data; see ``recipes.drawings``.
        digit_outliers: Number of drawings of other things added.
        photo_outliers: Number of generated pictures added; see ``recipes.photo_outliers``.
        teacher: ``"convnet"``, trained first; ``"vit"``, pretrained; or None. See ``recipes.distillation``.
        teacher_weight: Weight of the teacher's probabilities in the targets, in [0, 1]; the rest is the label's.
        teacher_image_size: Side in pixels at which the teacher sees every batch; 0 for the student's own.
        patch_drop_rates: For some patch sizes, the fraction of random patches that each image drops, except at the end
            of the run (PatchDropout; Liu et al., 2022, https://arxiv.org/abs/2208.07220).
    """

    patch_size_weights: dict[int, float]
    epochs: int
    batch_size: int = 128
    bf16: bool = True
    optimiser: str = "nmuon"
    learning_rate: float = 2e-3
    constant_rate: bool = False
    weight_decay: float = 0.05
    ema_decay: float = 0.999
    augment: bool = True
    mix_probability: float = 0.0
    synthetic_digits: int = 0
    digit_outliers: int = 0
    photo_outliers: int = 0
    teacher: str | None = None
    teacher_weight: float = 0.0
    teacher_image_size: int = 0
    patch_drop_rates: dict[int, float] = field(default_factory=dict)

    @property
    def patch_sizes(self) -> tuple[int, ...]:
        """The patch sizes that are trained, in pixels."""
        return tuple(self.patch_size_weights)


_CONVNET = Recipe(
    patch_size_weights={28: 1.0},
    epochs=8,
    optimiser="adamw",
    learning_rate=3e-3,
    ema_decay=0.99,
    synthetic_digits=10_000,
    digit_outliers=6000,
)

_DIGITS = replace(
    _CONVNET,
    # Small patches cost most, because the work grows with the number of tokens, and profit from the other sizes.
    patch_size_weights={2: 0.08, 4: 0.34, 7: 0.28, 14: 0.3},
    patch_drop_rates={2: 0.5},
    epochs=40,
    optimiser="nmuon",
    learning_rate=2e-3,
    ema_decay=0.999,
    teacher="convnet",
    teacher_weight=0.7,
)

# The notebook's own recipe, except that its cross-entropy receives logits instead of probabilities.
_NOTEBOOK = Recipe(
    patch_size_weights={},
    epochs=5,
    bf16=False,
    optimiser="adam",
    learning_rate=5e-3,
    constant_rate=True,
    weight_decay=0.0,
    ema_decay=0.0,
    augment=False,
)

RECIPES: dict[str, Recipe] = {
    "convnet": _CONVNET,
    "digits-small": _DIGITS,
    "digits-tiny": _DIGITS,
    **{f"digits-notebook-{p}": replace(_NOTEBOOK, patch_size_weights={p: 1.0}) for p in (4, 7, 14)},
    "photos-tiny": Recipe(
        # The largest patches leave the fewest tokens, and their accuracy lags behind.
        patch_size_weights={10: 0.2, 12: 0.25, 15: 0.2, 20: 0.35},
        # About 50 patches of the smaller sizes remain, so that they cost little more than the 36 of the largest.
        patch_drop_rates={10: 0.6, 12: 0.45, 15: 0.25},
        epochs=96,
        batch_size=512,
        mix_probability=0.8,
        photo_outliers=1600,
        teacher="vit",
        teacher_weight=0.9,
        teacher_image_size=160,  # half the tokens of 224, and no photo is enlarged much
    ),
}
"""The recipes by the stem of their file in ``checkpoints/``, and that of the digits' teacher. A file may be older than
its recipe; its header holds the one that it was trained with."""


def bundled_preset(name: str) -> Preset:
    """A preset with a recipe; ``PresetError`` if it is not bundled."""
    preset = PRESETS.get(name)
    if preset is None or not preset.is_bundled:
        bundled = ", ".join(p.name for p in PRESETS.values() if p.is_bundled)
        raise PresetError(f"Only bundled presets can be trained and evaluated, not {name}: choose from {bundled}.")
    return preset
