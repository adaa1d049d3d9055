"""``Preset``: a model with its labels, patch sizes and preprocessing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Literal

from vit_demo.defaults import CropMode
from vit_demo.errors import LabelError, PresetError
from vit_demo.model import ViTConfig
from vit_demo.scores import Scores
from vit_demo.words.texts import AS_TYPED, check_template, check_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vit_demo.trace import Structure

Task = Literal["digits", "photos"]
Kind = Literal["bundled", "hub", "folder", "memory", "trained"]

MAX_FEW_LABELS = 100  # labels that can be named beside a prediction


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A model with its labels, patch sizes and preprocessing.

    Attributes:
        name: As in ``explore(image, name)``.
        title: Title in the page's menu.
        task: ``"digits"``: grey 28 x 28 drawings. ``"photos"``: RGB.
        config: The network; its patch size is that of the stored kernel, not the default.
        labels: The class of each logit; equal names are told apart by their numbers, as in ``"crane (134)"``.
        patch_sizes: Patch sizes on offer, in pixels, ascending.
        default_patch_size: In pixels.
        flexible: Whether one set of weights was trained for all patch sizes. If not, a bundled preset has separate
            weights for each size, and one from the Hub was trained at one size and is resampled for the others.
        source: Where its weights are: with the package (``"bundled"``), downloaded on first use (``"hub"``), in a
            folder of the user's, in ``"memory"`` as a network that was given, or kept for an hour (``"trained"``).
        mean: Mean of each channel, for pixels in [0, 1]; subtracted from the input.
        std: Standard deviation of each channel, by which the input is divided.
        crop_fraction: Share of a photo's shorter side that a centre crop keeps (timm's ``crop_pct``).
        crop_mode: How it was trained to see photos, which the fit "crop" does: ``"center"``, ``"squash"`` or
            ``"border"``, as in timm, or ``"floor"``, as in transformers.
        interpolation: Filter that resizes a photo.
        repo: Repository on the Hub, or path of the folder; empty for a bundled preset.
        revision: Commit, tag or branch of the repository, or the state of a folder's files.
        library: ``"timm"`` or ``"transformers"`` if that builds the network; empty for one of this package.
        structure: The names of the parts of such a network; None if they are not known before it is loaded.
        has_mask: Whether something is added to the scores of its attention, which takes memory for all pairs of tokens.
        parameters: Their number in such a network; None for one of this package, whose config says it.
        trusted: Whether the operator of this process chose it, as in ``hub.fetch``.
        confidence_threshold: Probability of the prediction below which confidence counts as low.
        max_entropy: Generalized entropy of all probabilities above which it counts as low, too; see
            ``is_confident``.
        scores: What its logits become, as in ``vit_demo.scores``: ``"softmax"``, ``"sigmoid"`` or ``"none"``.
        takes_words: Whether its classes are words that one chooses; ``labels`` are those of now. See ``with_words``.
        template: The text that stands for a word, with ``{}`` in its place.
        assumed: One sentence about what had to be assumed of its preprocessing; empty if nothing was.
        note: One sentence for the page.
        base: The preset without these classes, if they were taught; None for all others.
        head: Its head, as bytes of ``weights.taught_heads.Head``; empty for all others.
    """

    name: str
    title: str
    task: Task
    config: ViTConfig
    labels: tuple[str, ...]
    patch_sizes: tuple[int, ...]
    default_patch_size: int
    flexible: bool
    source: Kind
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop_fraction: float = 1.0
    crop_mode: CropMode = "center"
    interpolation: str = "bicubic"
    repo: str = ""
    revision: str = ""
    library: str = ""
    structure: Structure | None = None
    has_mask: bool = False
    parameters: int | None = None
    trusted: bool = True
    confidence_threshold: float = 0.5
    max_entropy: float = math.inf
    scores: Scores = "softmax"
    takes_words: bool = False
    template: str = AS_TYPED
    assumed: str = ""
    note: str = ""
    base: Preset | None = None
    head: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        """Requests name a class by its label, so no two are equal."""
        counts, taken, named = Counter(self.labels), set(self.labels), list(self.labels)
        for i, label in enumerate(named if len(counts) < len(named) else ()):
            if counts[label] > 1:
                while label in taken:
                    label = f"{label} ({i})"
                taken.add(label)
                named[i] = label
        object.__setattr__(self, "labels", tuple(named))

    def with_words(self, words: Sequence[str], template: str = AS_TYPED) -> Preset:
        """The preset with other words as its classes; one of fixed classes as it is, if the words are among them.

        ``LabelError`` if they are not, or the words cannot be used; see ``words.texts``.
        """
        if not self.takes_words:
            given = words if isinstance(words, Sequence) else [words]
            unknown = [word for word in given if word not in self.labels]
            if not unknown and words and template == AS_TYPED:
                return self
            known = ", ".join(self.labels[:5]) + (", ..." if len(self.labels) > 5 else "")
            what = f"knows {len(self.labels):,} classes ({known})" if self.labels else "has no classes"
            raise LabelError(
                f"{self.name} {what}: for words of your own choose tinyclip-8m, or another CLIP or SigLIP."
            )
        checked = check_words(words, is_softmax=self.scores == "softmax")
        config = replace(self.config, num_classes=len(checked))
        return replace(self, labels=checked, template=check_template(template), config=config)

    @property
    def own(self) -> Preset:
        """The preset of the weights: the one that was taught, or this."""
        return self.base or self

    @property
    def is_bundled(self) -> bool:
        """Whether its weights ship with the package."""
        return self.source == "bundled"

    @property
    def is_downloaded(self) -> bool:
        """Whether its weights are downloaded from the Hub on first use."""
        return self.source == "hub"

    @property
    def is_folder(self) -> bool:
        """Whether its weights are in a folder of the user's."""
        return self.source == "folder"

    @property
    def is_in_memory(self) -> bool:
        """Whether it is a network that was given, whose weights nothing names."""
        return self.source == "memory"

    @property
    def is_kept(self) -> bool:
        """Whether ``weights.kept_networks`` keeps its network in memory, for an hour."""
        return self.source == "trained"

    @property
    def few_labels(self) -> tuple[str, ...]:
        """All labels if there are few, for beside a prediction: whatever a picture shows gets one of them."""
        return self.labels if len(self.labels) <= MAX_FEW_LABELS else ()

    def is_confident(self, probabilities: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether the confidence in predictions ``[..., K]`` is not low: bool ``[...]``; False without probabilities.

        In an image of something else, one probability may be high while the rest is spread over many classes. The
        generalized entropy, the sum of ``sqrt(p (1 - p))`` over all classes, measures that rest (GEN with gamma 1/2;
        Liu, Lochman and Zach, CVPR 2023).
        """
        entropy = ((probabilities * (1 - probabilities)).clip(0) ** 0.5).sum(-1)
        return (
            (probabilities.max(-1, initial=0) >= self.confidence_threshold)
            & (entropy <= self.max_entropy)
            & (self.scores != "none")
        )

    @property
    def image_size(self) -> int:
        """Side of the square input, in pixels."""
        return self.config.image_size

    @property
    def num_blocks(self) -> int:
        """Transformer blocks."""
        return self.config.depth

    @property
    def num_heads(self) -> int:
        """Attention heads of a block."""
        return self.config.num_heads

    @property
    def num_parameters(self) -> int:
        """Parameters of the network at the default patch size."""
        return self.num_parameters_at(self.default_patch_size)

    def num_parameters_at(self, patch_size: int) -> int:
        """Parameters of the network at a patch size; they differ only if each size has separate weights."""
        size = self.check_patch_size(patch_size)
        return self.config_at(size).num_parameters if self.parameters is None else self.parameters

    def check_patch_size(self, patch_size: int | None) -> int:
        """The patch size, or the default for None; ``PresetError`` if the preset does not offer it."""
        if patch_size is None:
            return self.default_patch_size
        for size in self.patch_sizes:
            if patch_size == size and isinstance(patch_size, Integral):
                return size
        known = ", ".join(map(str, self.patch_sizes))
        raise PresetError(f"{self.name} has no patch size {patch_size!r}: choose one of {known}.")

    def config_at(self, patch_size: int) -> ViTConfig:
        """The config of the network whose weights serve a patch size."""
        return self.config if self._has_one_checkpoint else replace(self.config, patch_size=patch_size)

    def checkpoint_name(self, patch_size: int) -> str:
        """Name of the weights for a patch size; of bundled weights the file name without its extension."""
        return self.name if self._has_one_checkpoint else f"{self.name}-{patch_size}"

    def is_resampled(self, patch_size: int) -> bool:
        """Whether the weights were not trained at this patch size."""
        return not self.is_bundled and not self.flexible and patch_size != self.config.patch_size

    @property
    def _has_one_checkpoint(self) -> bool:
        return self.flexible or not self.is_bundled
