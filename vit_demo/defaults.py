"""Defaults and limits that Python, command line, API, page and documents share; each stands here once.

What the page's scripts need of them, ``web/frontend/constants.py`` sends.
"""

from typing import Literal, get_args

DIGITS_PRESET = "digits-small"  # the model of a drawing, if none is named
PHOTOS_PRESET = "photos-tiny"  # the model of a photo, if none is named
WORDS_PRESET = "tinyclip-8m"  # the model of a photo whose classes are words, if none is named

LARGE_PHOTO_PRESET = "vit-s16"  # the model with 1,000 classes of the photo tab; its default once it is on this machine
MAX_VISITOR_WORDS = 50
"""Words in a request of the page or the API; a large text tower needs a tenth of a second for each."""

MAX_HEADS = 1000
"""Heads that a request of the page or the API silences; a network of 40 blocks has as many."""

MAX_PICTURE_BYTES = 50_000_000
"""Size of a picture file, read or uploaded."""

PICTURE_SUFFIXES = frozenset(
    (".avif", ".bmp", ".gif", ".heic", ".heif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
"""Files of a folder that are taken for pictures."""

DEFAULT_METHOD = "libra_fullgrad"  # if none is named: the most faithful of the quick ones (docs/faithfulness.md)
CLASSLESS_METHOD = "rollout"  # the map of a model without classes, if no method is named

Fit = Literal["crop", "squash", "keep"]
"""How a photo becomes the input: its centre square, squashed to a square, or whole on a rectangular grid."""

CropMode = Literal["center", "squash", "border", "floor"]
"""How a network was trained to see photos, which is what the fit "crop" does: the centre square, a squashed photo, or a
whole one with bars at its edges (timm's ``crop_mode``); or the centre square with half a pixel rounded down, as
transformers does."""

FITS: tuple[Fit, ...] = get_args(Fit)  # the first is the default
Direction = Literal["from", "to"]  # what the query attends to, or what attends to it

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

Baseline = Literal["mean", "blur", "black"]  # what replaces a removed patch when a heatmap is tested

BASELINES: tuple[Baseline, ...] = get_args(Baseline)

NUM_STEPS = 14  # how many times patches are replaced, or returned, by deletion and insertion
NUM_RANDOM_ORDERS = 5  # random orders with which deletion and insertion are compared

IMPROBABLE = 0.1
"""A class with a lower probability has none to lose: its maps are tested on its logit; no patches are enough for it."""

ENOUGH_SHARE = 0.9  # the share of a class's probability that patches which are enough for it keep
NUM_CLASSES = 5  # classes that are shown of a prediction, the most likely first

MAX_TAUGHT_CLASSES, MAX_TAUGHT_PICTURES, MAX_LABEL = 10, 60, 40
"""Classes that a visitor can teach, pictures of an address that teach them, and characters of the name of a class."""

OPACITY = 0.6  # opacity of a heatmap over its picture in ``overlay``
HOST, PORT = "127.0.0.1", 7860  # where the page is served by default; at the next free port if that one is taken
