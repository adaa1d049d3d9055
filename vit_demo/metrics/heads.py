"""What heads are for: what a class loses without one, and how few of them keep it."""

from dataclasses import dataclass
from typing import Any, Unpack

import torch
from torch import Tensor

from vit_demo.methods.subsets import Progress, sequence_patches, sequences_per_batch
from vit_demo.methods.targets import class_scores
from vit_demo.metrics.minimal_sets import MAX_PASSES, Search
from vit_demo.trace import PassOptions, TracedViT


@dataclass(frozen=True)
class HeadSet:
    """A set of heads that is enough for a class while all others are silent.

    Attributes:
        heads: (block, head) of each, in the order of their effects.
        probability: Of the class with these heads alone.
        prediction: The index of the most probable class then.
        predicted_probability: Of that class.
        passes: How many sets of heads were tried.
        is_minimal: Whether each head was found to be necessary; False if the passes were used up before.
    """

    heads: tuple[tuple[int, int], ...]
    probability: float
    prediction: int
    predicted_probability: float
    passes: int
    is_minimal: bool


@torch.no_grad()
def head_logits(
    model: TracedViT,
    images: Tensor,
    silent: Tensor,
    *,
    batch_size: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> Tensor:
    """The logits ``[M, classes]`` float32 of one image in M passes, with other heads silent in each.

    ``silent`` is bool ``[M, blocks, H]``. ``batch_size`` passes run at once, for None as many as fit. Other parameters
    as in ``vit_demo.methods``.
    """
    patches, found = len(sequence_patches(model, images, **options)[1]), list[Tensor]()
    kept, done = options.get("kept_patches"), 0
    size = batch_size or sequences_per_batch(patches + model.config.num_prefix_tokens)
    for part in silent.split(min(size, len(silent))):
        if kept is not None:
            options["kept_patches"] = kept.expand(len(part), -1)
        found.append(model(images.expand(len(part), -1, -1, -1), silent=part, **options).float())
        done += len(part)
        if progress is not None:
            progress(done, len(silent))
    return torch.cat(found)


def head_effects(
    model: TracedViT, images: Tensor, target: int, *, against: int | None = None, log: bool = False, **options: Any
) -> Tensor:
    """What a class's score loses when each head alone is silent, ``[blocks, H]``.

    The score is the logit, or with ``log`` the logarithm of the probability; with ``against``, by how much it exceeds
    that of the other class. Other parameters as in ``head_logits``.
    """
    shape = (model.config.depth, model.config.num_heads)
    silent = torch.eye(shape[0] * shape[1], dtype=torch.bool, device="cpu")
    logits = head_logits(model, images, torch.cat([silent[:1] & False, silent]).unflatten(1, shape), **options)
    scores = class_scores(model.to_scores(logits, log=True) if log else logits, target, against)
    return (scores[0] - scores[1:]).unflatten(0, shape)


def sufficient_heads(
    model: TracedViT,
    images: Tensor,
    target: int,
    *,
    share: float | None = None,
    max_passes: int = MAX_PASSES,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> HeadSet | None:
    """The fewest heads found that keep a class while all others are silent; see ``sufficient_set``.

    Heads are tried in the order of their effects, which take a pass each.

    Returns:
        The set; None if not even all heads are enough.
    """
    count = model.config.depth * model.config.num_heads + 1

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(done if total == count else count + done, count + 2 * max_passes)

    effects = head_effects(model, images, target, progress=report, **options)
    search = _HeadSearch(model, images, target, share, max_passes, report, options)
    found = search.smallest(search.ordered(effects))
    if found is None:
        return None
    scores = (found.probability, found.prediction, found.predicted_probability)
    return HeadSet(found.patches, *scores, found.passes, found.is_minimal)


class _HeadSearch(Search):
    """A search for heads in place of patches."""

    def parts(self) -> tuple[tuple[int, int], Tensor]:
        shape = (self.model.config.depth, self.model.config.num_heads)
        return shape, torch.arange(shape[0] * shape[1], device="cpu")

    def logits(self, present: Tensor) -> Tensor:
        silent = ~present.unflatten(1, self.parts()[0])
        return head_logits(self.model, self.images, silent, **self.options).cpu()
