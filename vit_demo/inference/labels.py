"""The names of the classes of a network in memory."""

from collections.abc import Mapping, Sequence

import numpy as np

from vit_demo.errors import LabelError
from vit_demo.weights.imagenet import IMAGENET_LABELS

Labels = Sequence[str] | Mapping[int, str]


def class_names(own: Sequence[str], count: int, labels: Labels | None) -> tuple[str, ...]:
    """The names of the classes: as given, as the network has them, ImageNet's for a thousand, or numbers."""
    if isinstance(labels, Mapping):
        by_number = {str(index): name for index, name in labels.items()}
        if by_number.keys() != {str(index) for index in range(count)}:
            raise LabelError(f"This network has {count} classes: name each of them, numbered from 0.")
        labels = [by_number[str(index)] for index in range(count)]
    if labels is not None:
        is_list = isinstance(labels, Sequence | np.ndarray) and not isinstance(labels, str)
        if not is_list or len(labels) != count or not all(isinstance(name, str) for name in labels):
            raise LabelError(f"This network has {count} classes: give a list of as many labels, each a string.")
        return tuple(map(str, labels))
    if len(own) == count and not all(name.startswith("LABEL_") for name in own):
        return tuple(own)
    return IMAGENET_LABELS if count == len(IMAGENET_LABELS) else tuple(map(str, range(count)))
