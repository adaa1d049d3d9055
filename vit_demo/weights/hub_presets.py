"""The public checkpoints that have a name here: timm's, on the Hub, with the preprocessing that timm publishes.

All but FlexiViT-S are pinned to a commit of their repository: one that at least two unrelated public projects pin, too,
or, for FlexiViT-B, that the Hub's own page lists with these weights. The figures in the notes are top-1 on ImageNet's
validation set, as published with timm; for other patch sizes see ``elsewhere``.
"""

from __future__ import annotations

from torchvision.models import ViT_B_16_Weights

from vit_demo.model import ViTConfig
from vit_demo.weights.limits import MAX_GRID
from vit_demo.weights.preset import Preset

IMAGENET_LABELS: tuple[str, ...] = tuple(ViT_B_16_Weights.IMAGENET1K_V1.meta["categories"])
"""The 1,000 classes, in the order that every public checkpoint has them."""

HALF = (0.5, 0.5, 0.5)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def offered_sizes(image_size: int, native: int) -> tuple[int, ...]:
    """The patch sizes worth trying with weights of one size: the divisors of the image from half to three times it."""
    return tuple(
        p
        for p in range(1, image_size + 1)
        if p == native or (image_size % p == 0 and native <= 2 * p and p <= 3 * native and image_size // p <= MAX_GRID)
    )


def _sized(letter: str, **changes: object) -> ViTConfig:
    """The usual widths: Ti, S and B."""
    width, heads = {"ti": (192, 3), "s": (384, 6), "b": (768, 12)}[letter]
    return ViTConfig(**{"embed_dim": width, "num_heads": heads, **changes})  # type: ignore[arg-type]


def _public(
    name: str,
    title: str,
    repo: str,
    config: ViTConfig,
    note: str,
    *,
    labels: tuple[str, ...] = IMAGENET_LABELS,
    patch_sizes: tuple[int, ...] = (),
    mean: tuple[float, ...] = HALF,
    std: tuple[float, ...] = HALF,
    crop_fraction: float = 0.9,
    revision: str = "main",
) -> Preset:
    return Preset(
        name=name,
        title=title,
        task="photos",
        config=config,
        labels=labels,
        patch_sizes=patch_sizes or offered_sizes(config.image_size, config.patch_size),
        default_patch_size=config.patch_size,
        flexible=bool(patch_sizes),
        source="hub",
        mean=mean,
        std=std,
        crop_fraction=crop_fraction,
        repo=repo,
        revision=revision,
        note=note,
    )


_FLEXIBLE = tuple(p for p in range(8, 49) if 240 % p == 0)
_NATIVE = "Made for patches of 16 px: right on {}\u00a0% of ImageNet (published)."

PUBLIC: tuple[Preset, ...] = (
    _public(
        "vit-ti16",
        "ViT-Ti/16, 1,000 classes",
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k",
        _sized("ti"),
        _NATIVE.format(75.5),
        revision="7d3afdd0cf93ad84d986eb2d6bcc5812ebd0b106",
    ),
    _public(
        "vit-s16",
        "ViT-S/16, 1,000 classes",
        "timm/vit_small_patch16_224.augreg_in21k_ft_in1k",
        _sized("s"),
        _NATIVE.format(81.4),
        revision="7e2c55630205e1266030f18370f4c6ed1a514b52",
    ),
    _public(
        "vit-b16",
        "ViT-B/16, 1,000 classes",
        "timm/vit_base_patch16_224.augreg_in21k_ft_in1k",
        _sized("b"),
        _NATIVE.format(84.5),
        revision="2ec9fb3d7bb664aac471ac44582c94d18de33780",
    ),
    _public(
        "deit-ti16",
        "DeiT-Ti/16, 1,000 classes",
        "timm/deit_tiny_patch16_224.fb_in1k",
        _sized("ti"),
        _NATIVE.format(72.2),
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        revision="80e968688553f219e4a86f940ed945a23709c16f",
    ),
    *(
        _public(
            f"flexivit-{letter}",
            f"FlexiViT-{letter.upper()}, 1,000 classes, any patch size",
            f"timm/flexivit_{size}.1200ep_in1k",
            _sized(letter, image_size=240, position_prefix=False),
            f"One set of weights, trained for all patch sizes at once (published: {accuracy} %).",
            patch_sizes=_FLEXIBLE,
            crop_fraction=0.95,
            revision=revision,
        )
        for letter, size, accuracy, revision in (
            ("s", "small", 82.6, "main"),  # no commit of it was found
            ("b", "base", 84.7, "495667866514ad9af81d26ed070e8c10532cf3f9"),
        )
    ),
    _public(
        "dinov2-s14",
        "DINOv2-S/14 with registers, no classes",
        "timm/vit_small_patch14_reg4_dinov2.lvd142m",
        _sized(
            "s",
            image_size=518,
            patch_size=14,
            num_classes=0,
            num_registers=4,
            layer_scale=1e-5,
            position_prefix=False,
        ),
        "Learned without labels, so it names nothing; made for patches of 14 px, others are resampled.",
        labels=(),
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        crop_fraction=1.0,
        revision="c04b5193082a8d5b0c4856c7937384a48136c5de",
    ),
)
"""In the order in which a page lists them, after what is bundled."""
