"""An audit's work on a batch: reads pictures, runs the network, and makes an entry of each."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from vit_demo.auditing.measures import measure, one_pass, tested
from vit_demo.auditing.pictures import Item, Objects
from vit_demo.auditing.record import packed, stamp_of
from vit_demo.checks import whole_number
from vit_demo.errors import ImageError, InputError, LabelError
from vit_demo.inference.explainer import Explainer
from vit_demo.scores import to_scores
from vit_demo.training.labelled_folder import folder_classes

SIDE = 224
"""Longest side, in pixels, of the copies of pictures that are no files."""


def prepared(
    explainer: Explainer, items: Iterable[Item], problems: list[tuple[str, str]]
) -> Iterator[tuple[Item, Any]]:
    """Each picture with what a network needs of it; one that cannot be used is a problem, and left out."""
    for item in items:
        try:
            yield item, explainer._prepare(item.image, item.name)
        except InputError as error:
            if not isinstance(error, ImageError) and not isinstance(item.image, Tensor):
                raise
            problems.append((item.name, str(error)))


def entries_of(
    group: list[tuple[Item, Any]],
    method: str,
    against: int | None,
    class_of: Callable[[Any], int],
    objects: Objects,
    faithfulness: bool,
) -> Iterator[tuple[Item, dict[str, Any]]]:
    """What is kept of pictures whose inputs have one shape."""
    _, preset, _, _, run = group[0][1]
    pixels = torch.cat([prepared[0].pixels for _, prepared in group])
    logits, maps, tokens = run(one_pass, pixels, method, against)
    best = to_scores(logits, preset.scores).topk(min(5, logits.shape[1]))
    for index, (item, (given, *_)) in enumerate(group):
        predicted, (probability, *others) = int(best.indices[index, 0]), best.values[index].tolist()
        truth, problem, covered = None if item.truth is None else class_of(item.truth), "", None
        try:
            covered = objects.covered(item, given.geometry, maps.shape[1:])
        except InputError as error:
            problem = str(error)
        row = {
            "file": item.name,
            "truth": None if truth is None else preset.labels[truth],
            "prediction": preset.labels[predicted],
            "probability": probability,
            "margin": probability - others[0] if others else None,
            "right": None if truth is None else truth == predicted,
            **measure(maps[index].numpy(), covered),
        }
        if faithfulness:
            one, baseline = pixels[index : index + 1], torch.zeros(1, 1, 1, 1)
            row["insertion_minus_deletion"] = run(tested, one, predicted, maps[index], baseline, slow=True)
        top = list(zip([preset.labels[k] for k in best.indices[index]], best.values[index].tolist(), strict=True))
        entry = {"row": row, "top": top, "problem": problem, "map": packed(maps[index]), "token": packed(tokens[index])}
        yield item, entry | {"stamp": stamp_of(item.image), "image": _copy(item, given.image)}


def _copy(item: Item, shown: Image.Image) -> str:
    """What the network saw of a picture that is no file, as a JPEG in base64; empty for a file."""
    if isinstance(item.image, str | os.PathLike):
        return ""
    shown.thumbnail((SIDE, SIDE))
    shown.save(buffer := io.BytesIO(), "JPEG", quality=85)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def class_index(labels: Sequence[str], truth: Any) -> int:
    """The index of a class by its label, as a folder is named or by its number; ``LabelError`` if there is none."""
    if isinstance(truth, str):
        return folder_classes([truth], labels)[truth]
    if (index := whole_number(truth, "A true class", 0)) >= len(labels):
        raise LabelError(f"There is no class {index}: the model has {len(labels)}, counted from 0.")
    return index
