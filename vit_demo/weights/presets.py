"""The table of presets: which models there are, what they were trained for, and the patch sizes they know."""

from __future__ import annotations

from dataclasses import replace

from vit_demo.errors import PresetError
from vit_demo.model import ViTConfig
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.weights.custom_model import is_custom, read_custom
from vit_demo.weights.hub import Progress
from vit_demo.weights.hub_presets import PUBLIC
from vit_demo.weights.preset import Preset
from vit_demo.weights.text import quoted

_DIGIT_LABELS = tuple("0123456789")
_HALF = (0.5, 0.5, 0.5)


def _flexible_digits(name: str, title: str, embed_dim: int) -> Preset:
    # A kernel as large as the largest patch and a grid as fine as the smallest one's: no size is short of weights.
    shape = ViTConfig(image_size=28, patch_size=14, position_grid=14, in_channels=1, num_classes=10)
    return Preset(
        name=name,
        title=title,
        task="digits",
        config=replace(shape, embed_dim=embed_dim, depth=6, num_heads=4),
        labels=_DIGIT_LABELS,
        patch_sizes=(2, 4, 7, 14),
        default_patch_size=4,
        flexible=True,
        source="bundled",
        mean=(0.1307,),
        std=(0.3081,),
        confidence_threshold=0.8,  # at most one of a hundred of MNIST's validation digits is doubted
        note="One set of weights, trained for all four patch sizes at once.",
    )


_PHOTO_LABELS = (
    "tabby cat", "golden retriever", "German shepherd", "Chihuahua", "lion", "brown bear", "African elephant",
    "red panda", "koala", "king penguin", "goldfish", "ladybug", "monarch butterfly", "jellyfish", "sports car",
    "school bus", "tractor", "bullet train", "gondola", "pizza", "banana", "orange", "lemon", "mushroom", "ice cream",
    "espresso", "bell pepper", "umbrella", "teapot", "teddy bear", "computer keyboard", "backpack", "sunglasses",
    "rocking chair", "suspension bridge", "lighthouse", "barn", "seashore", "alp", "fountain",
    "tench", "English springer", "cassette player", "chain saw", "church", "French horn", "garbage truck", "gas pump",
    "golf ball", "parachute",
)  # fmt: skip

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _flexible_digits("digits-small", "Digits, small", 128),
        _flexible_digits("digits-tiny", "Digits, tiny", 64),
        Preset(
            name="digits-notebook",
            title="Digits, the MNIST notebook",
            task="digits",
            config=MNIST_FROM_SCRATCH,
            labels=_DIGIT_LABELS,
            patch_sizes=(4, 7, 14),
            default_patch_size=4,
            flexible=False,
            source="bundled",
            mean=(0.1307,),
            std=(0.3081,),
            note="Tokens of 8 numbers, as in the notebook: quick to train, often wrong, weights of its own per size.",
        ),
        Preset(
            name="photos-tiny",
            title="Photos, 50 everyday things",
            task="photos",
            config=ViTConfig(
                image_size=120, patch_size=24, position_grid=12, num_classes=50, embed_dim=192, depth=6, num_heads=3
            ),
            labels=_PHOTO_LABELS,
            patch_sizes=(10, 12, 15, 20),
            default_patch_size=12,  # as often right as 10, with a third fewer tokens
            flexible=True,
            source="bundled",
            mean=_HALF,
            std=_HALF,
            confidence_threshold=0.55,  # of real photos held back from training, one right answer in nine is doubted
            note="Sees 120 x 120 pixels and knows 50 things; of anything else it is mostly unsure.",
        ),
        *PUBLIC,
    )
}
"""Every preset by name, in the order in which a page lists them."""


def find_preset(name: str, progress: Progress | None = None, *, trusted: bool = True) -> Preset:
    """A preset by its name, or one made of somebody's own model.

    Args:
        name: One of ``PRESETS``; a repository of the Hub, ``org/name`` or ``org/name@revision``; or a folder.
        progress: Told how far it is where a repository is fetched; a bar on stderr for None.
        trusted: Whether whoever runs this process named it, as in Python and on the command line. A name from a
            visitor of a page is not: it cannot stand for a folder, a repository is fetched without a token into a
            cache apart, and must be small enough; see ``limits``.

    Raises:
        PresetError: If there is none of that name, or the model is of a kind that cannot be used here.
        CheckpointError: If a repository cannot be fetched, or holds no weights that can be used.
    """
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    if isinstance(name, str) and is_custom(name, trusted=trusted):
        return read_custom(name, progress, trusted=trusted)
    known = ", ".join(PRESETS)
    other = "a repository of the Hub as org/name" + (", or a folder" if trusted else "")
    raise PresetError(f"There is no preset {quoted(name)}: choose one of {known}, or name {other}.")
