"""The table of presets. One entry here, or in ``hub_presets`` for the Hub, adds a model to every interface."""

from dataclasses import replace

from vit_demo.defaults import DIGITS_PRESET, PHOTOS_PRESET
from vit_demo.model import ViTConfig
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.weights.hub_presets import HUB_PRESETS
from vit_demo.weights.preset import Preset, Task

_DIGIT_LABELS = tuple("0123456789")
_HALF = (0.5, 0.5, 0.5)


def _flexible_digits(name: str, title: str, embed_dim: int) -> Preset:
    # The stored kernel is that of the largest patch, the stored grid that of the smallest: no size has to extrapolate.
    shape = ViTConfig(image_size=28, patch_size=14, pos_embed_grid=14, in_channels=1, num_classes=10)
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
        confidence_threshold=0.95,  # at most 5 % of 1,000 test digits of MNIST are below it, a house often is
        note="The same weights were trained with all four patch sizes.",
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
            note="8 numbers per token, as in the notebook: quick to train, often wrong. Separate weights per size.",
        ),
        Preset(
            name="photos-tiny",
            title="Photos, 50 everyday things",
            task="photos",
            config=ViTConfig(
                image_size=120, patch_size=24, pos_embed_grid=12, num_classes=50, embed_dim=192, depth=6, num_heads=3
            ),
            labels=_PHOTO_LABELS,
            patch_sizes=(10, 12, 15, 20),
            default_patch_size=12,  # as accurate as 10, with a third fewer tokens
            flexible=True,
            source="bundled",
            mean=_HALF,
            std=_HALF,
            # An eighth of the correct predictions on held-out real photos exceed this or do not reach one half.
            max_entropy=4.4,
            note="Input of 120 x 120 pixels, 50 classes. Shown 100 photos of something else, it gives a confident "
            "wrong answer for 26.",
        ),
        *HUB_PRESETS,
    )
}
"""Every preset by name, in the order of the page's menu."""

DEFAULT_PRESETS: dict[Task, str] = {"digits": DIGITS_PRESET, "photos": PHOTOS_PRESET}  # if none is named
