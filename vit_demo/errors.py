"""Exceptions for invalid input. Their message is one sentence that tells the user what to do.

The page, the API and the command line show the message of an ``InputError``. Any other exception is a bug, which is
logged with its traceback.
"""

import sys
import warnings

from vit_demo.sentences import sentence


class InputError(ValueError):
    """Invalid input; base class of all other errors here."""

    def __init__(self, message: str, *values: object) -> None:
        """``message`` is a sentence, or the template of one with values: ``{0}``, ``{1}`` and so on."""
        super().__init__(sentence(message, *values) if values else message)


class ImageError(InputError):
    """A picture that cannot be read or used."""


class EmptyDrawingError(ImageError):
    """A drawing without ink."""


class PresetError(InputError):
    """An unknown preset, or a choice that the preset does not offer, such as a patch size."""


class LabelError(InputError):
    """A class that the model does not have."""


class CheckpointError(InputError):
    """A checkpoint that is missing, damaged, of another network, or cannot be downloaded."""


class MissingPackageError(InputError, ImportError):
    """A package that is not installed, because only an extra of vit_demo needs it."""


class BusyError(InputError):
    """Too much work in the queue, or a server that is shutting down."""


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warns at the line outside this package that called it."""
    frame, level, last = sys._getframe(), 1, 1
    while frame := frame.f_back:  # type: ignore[assignment]
        level += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] == "vit_demo":
            last = level
    warnings.warn(message, kind, last + 1)
