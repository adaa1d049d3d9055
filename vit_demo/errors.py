"""What can go wrong for a person, as exceptions whose message is one sentence that says what to do.

Everything that catches errors for people (the page, the API, the command line) shows the message of an ``InputError``
and of nothing else: any other exception is a bug, which is logged with its traceback.
"""


class InputError(ValueError):
    """A request cannot be met as it stands; the message says what to change."""


class ImageError(InputError):
    """A picture cannot be read or used."""


class EmptySketchError(ImageError):
    """There is nothing drawn on the pad."""


class PresetError(InputError):
    """A preset is unknown, or a choice such as the patch size does not fit it."""


class LabelError(InputError):
    """A model has no class of that name or index."""


class CheckpointError(InputError):
    """A checkpoint is missing, damaged or of the wrong shape, or cannot be fetched."""


class BusyError(InputError):
    """Too much work is waiting already, or the server is shutting down."""
