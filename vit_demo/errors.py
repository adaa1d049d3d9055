"""What can go wrong for a person, as exceptions whose message is one sentence that tells them what to do."""


class ImageError(ValueError):
    """A picture cannot be read or used."""


class EmptySketchError(ImageError):
    """There is nothing drawn on the pad."""


class PresetError(ValueError):
    """A preset is unknown, or a choice such as the patch size does not fit it."""


class LabelError(ValueError):
    """A model has no class of that name or index."""


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged or of the wrong shape, or cannot be fetched."""
