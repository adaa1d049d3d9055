"""The names of the classes of a network in memory."""

from collections.abc import Mapping, Sequence

import numpy as np

from vit_demo.errors import LabelError
from vit_demo.weights.imagenet import IMAGENET_ASSUMED, IMAGENET_LABELS

OTHER_COUNT = "Its names are not as many as its classes, which have numbers instead."

Labels = Sequence[str] | Mapping[int, str]


def class_names(own: Sequence[str], count: int, labels: Labels | None) -> tuple[tuple[str, ...], str]:
    """The names of the classes, as given, as the network has them, ImageNet's for a thousand, or numbers; and a note.

    The note says that ImageNet's were taken, or numbers instead of the network's own, and is empty otherwise.
    """
    if isinstance(labels, Mapping):
        by_number = {str(index): name for index, name in labels.items()}
        if by_number.keys() != {str(index) for index in range(count)}:
            raise LabelError(f"This network has {count} classes: name each of them, numbered from 0.")
        labels = [by_number[str(index)] for index in range(count)]
    if labels is not None:
        is_list = isinstance(labels, Sequence | np.ndarray) and not isinstance(labels, str)
        if not is_list or len(labels) != count or not all(isinstance(name, str) for name in labels):
            raise LabelError(f"This network has {count} classes: give a list of as many labels, each a string.")
        return tuple(map(str, labels)), ""
    own = () if all(name.startswith("LABEL_") for name in own) else own
    if len(own) == count:
        return tuple(own), ""
    if count == len(IMAGENET_LABELS) and not own:
        return IMAGENET_LABELS, IMAGENET_ASSUMED
    return tuple(map(str, range(count))), OTHER_COUNT if own and count else ""
