"""``vit_demo.audit``: one pass over many pictures, which tells what a network's answers rest on."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from tqdm import tqdm

from vit_demo.auditing.groups import groups_of, unusual
from vit_demo.auditing.measures import checksum, measure, one_pass, tested
from vit_demo.auditing.objects import Objects
from vit_demo.auditing.pictures import Item, items_of, mark_of
from vit_demo.auditing.record import Record, packed
from vit_demo.auditing.report import Audit
from vit_demo.checks import whole_number
from vit_demo.defaults import DEFAULT_METHOD, NUM_CLASSES
from vit_demo.errors import InputError
from vit_demo.inference.explainer import Explainer, Prepared
from vit_demo.inference.inputs import read_each
from vit_demo.inference.sequence import find_class
from vit_demo.methods import find_method
from vit_demo.scores import to_scores
from vit_demo.training.labelled_folder import folder_classes

Ready = tuple[Item, Prepared]
SIDE = 224  # least longest side, in pixels, of the copies of pictures that are no files


def audit(
    model: Any,
    pictures: Any,
    truth: Any = None,
    masks: Any = None,
    method: str = DEFAULT_METHOD,
    against: str | int | None = None,
    faithfulness: bool = False,
    batch_size: int = 16,
    limit: int | None = None,
    *,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    **how: Any,
) -> Audit:
    """Tells which of many pictures are right, or wrong, for the wrong reason.

    One forward and backward pass gives each picture's prediction and the map of the evidence for its class. Those are
    grouped by spectral clustering, as in Lapuschkin et al., 2019 (https://arxiv.org/abs/1902.10178), and groups whose
    evidence lies where that of other pictures does not come first. In memory are a batch, and a small map and token of
    each picture.

    Args:
        model: What ``vit_demo.Explainer`` takes, or one.
        pictures: A folder with a subfolder for each class, or with pictures alone; a dict from paths to true classes;
            or what gives images, or pairs of an image and its true class, such as a ``Dataset`` of torch.
        truth: The true classes, by label or index, instead: a list in the order of the pictures, or a dict by names.
        masks: Where the objects are: a folder of pictures of the same names and sizes, white on the object; a CSV of
            boxes with the columns file, left, top, right, bottom; COCO's JSON; or a dict or list of masks or boxes.
        method: Name of the method of the maps, which are those of the true class or else of the predicted one.
        against: A class that these are compared with, if the method compares classes.
        faithfulness: Whether to test each map by insertion and deletion, which takes thirty passes more.
        batch_size: How many pictures are in memory at once.
        limit: At most so many pictures, spread evenly; all for None.
        seed: That of the clustering.
        out: A folder that keeps what was done: a second run with the same choices goes on from there.
        **how: As in ``vit_demo.Explainer``: ``labels``, ``transform``, ``patch_size``, ``device`` and others.

    Returns:
        The table of all pictures, their groups, and the report of both.

    Raises:
        InputError: If an argument is wrong, or no picture can be used; one that cannot is in ``problems``.
        LabelError: If a truth names no class of the model.

    Example:
        >>> audit = vit_demo.audit("photos-tiny", "validation/")
        >>> audit.groups[0].why
        'Reads the top left corner in 41 of 50 pictures ...'
    """
    if limit is not None:
        whole_number(limit, "The limit", 1)
    size, chosen = whole_number(batch_size, "The batch size", 1), find_method(method)
    explainer = model if isinstance(model, Explainer) else Explainer(model, **how)
    items, total, folders = items_of(pictures, truth, limit)
    objects, problems = Objects(masks), list[tuple[str, str]]()
    first = next(prepared(explainer, items, problems), None)
    if first is None:
        why = ": ".join(problems[0]) if problems else "there are none."
        raise InputError("None of the pictures can be used: {0}", why)
    item, (_, preset, patch_size, _, run) = first
    if not preset.labels:
        raise InputError(f"{preset.name} has no classes: choose a model with a classifier head.")
    other = None if against is None else find_class(preset.labels, against, preset.title)
    class_of = cache(partial(class_index, preset.labels))
    for folder in sorted(folders):
        class_of(folder)
    settings = {"network": run(checksum), "labels": preset.labels, "patch_size": patch_size, "method": chosen.name}
    settings |= {"against": other, "faithfulness": faithfulness, "masks": objects.checksum}
    found = Audit(explainer, preset, patch_size, chosen.name, problems=problems)
    bar = tqdm(total=total, initial=len(problems), unit=" pictures", disable=None, leave=False)
    record = Record(None if out is None else Path(out), settings)
    asked = _Asked(found, record, other, class_of, objects, faithfulness)
    items, has_masks = chain([item], items), masks is None
    with bar, record.file:
        while part := list(islice(items, size)):
            has_masks = has_masks or any(map(objects.name_of, part))
            asked.add(part)
            bar.update(len(part))
    if not has_masks:
        names = f"{objects.names[0]}, and {found.table[0]['file']}, for example."
        problems.append(("masks", f"None of them has the name of a picture: {names}"))
    for row, rank in zip(found.table, unusual(found.table, found.maps), strict=True):
        row["unusual"] = rank
    found.groups = groups_of(found.table, found.maps, found.tokens, seed)
    return found


def prepared(explainer: Explainer, items: Iterable[Item], problems: list[tuple[str, str]]) -> Iterator[Ready]:
    """Each picture, ready for a network; one that cannot be used is a problem, and left out."""

    def note(name: str, _: object, error: InputError) -> None:
        problems.append((name, str(error)))

    for item in items:
        for ready in read_each([item.image], partial(note, item.name), explainer.prepare):
            yield item, ready


@dataclass(frozen=True)
class _Asked:
    """Measures pictures, part by part, and adds what it finds to an audit."""

    audit: Audit
    record: Record
    against: int | None
    class_of: Callable[[Any], int]
    objects: Objects
    faithfulness: bool

    def add(self, part: list[Item]) -> None:
        """Adds some pictures: what the record has of them, or what a pass of those of one shape gives."""
        entries: dict[str, Any] = {item.name: self.record.find(item.name, mark_of(item)) for item in part}
        new = (item for item in part if entries[item.name] is None)
        ready = list(prepared(self.audit.explainer, new, self.audit.problems))
        for _, group in groupby(ready, lambda one: one[1].given.pixels.shape):
            for item, entry in self._entries(list(group)):
                entries[item.name] = entry
                self.record.add(entry)
        for item in part:
            if (entry := entries[item.name]) is not None:
                self.audit.add(item, entry)

    def _entries(self, group: list[Ready]) -> Iterator[tuple[Item, dict[str, Any]]]:
        """What is kept of pictures whose inputs have one shape."""
        preset, run = group[0][1].preset, group[0][1].run
        pixels = torch.cat([one.given.pixels for _, one in group])
        truths = [-1 if item.truth is None else self.class_of(item.truth) for item, _ in group]
        logits, maps, tokens = run(one_pass, pixels, torch.tensor(truths), self.audit.method, self.against)
        best = to_scores(logits, preset.scores).topk(min(NUM_CLASSES, logits.shape[1]))
        for index, (item, (given, *_)) in enumerate(group):
            predicted, (probability, *others) = int(best.indices[index, 0]), best.values[index].tolist()
            truth, problem, covered = truths[index], "", None
            target = predicted if truth < 0 else truth
            try:
                shape = maps.shape[1], maps.shape[2]
                covered = self.objects.covered(item, given.geometry, shape, preset.labels[target])
            except InputError as error:
                problem = str(error)
            row = {
                "file": item.name,
                "truth": None if truth < 0 else preset.labels[truth],
                "prediction": preset.labels[predicted],
                "probability": probability,
                "margin": probability - others[0] if others else None,
                "right": None if truth < 0 else truth == predicted,
                **measure(maps[index].numpy(), covered),
            }
            if self.faithfulness:
                one = pixels[index : index + 1]
                row["insertion_minus_deletion"] = run(tested, one, target, maps[index], slow=True)
            yield (
                item,
                {
                    "row": row,
                    "top": list(
                        zip([preset.labels[k] for k in best.indices[index]], [probability, *others], strict=True)
                    ),
                    "problem": problem,
                    "map": packed(maps[index]),
                    "token": packed(tokens[index]),
                    "stamp": mark_of(item),
                    "image": _copy(item, given.image),
                },
            )


def _copy(item: Item, shown: Image.Image) -> str:
    """What the network saw of a picture that is no file, as a JPEG in base64; empty for a file."""
    if isinstance(item.image, str | os.PathLike):
        return ""
    shown.reduce(max(1, max(shown.size) // SIDE)).save(buffer := io.BytesIO(), "JPEG", quality=85)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def class_index(labels: Sequence[str], truth: Any) -> int:
    """The index of a class by its label, as a folder is named or by its number; ``LabelError`` if there is none."""
    return folder_classes([truth], labels)[truth] if isinstance(truth, str) else find_class(labels, truth, "The model")
