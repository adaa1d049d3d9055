"""Presets on the Hugging Face Hub: checkpoints of timm, and of transformers for words, with their preprocessing.

Those with a ``revision`` are pinned to a commit: one that at least two unrelated public projects also pin or, for
FlexiViT-B, EVA-02 and BEiT, that the Hub's page lists with these weights. For the others none was found. The figures
in the notes are top-1 on ImageNet's validation set, as published by timm; for other patch sizes see
``web/catalog/menu.py``.
"""

from dataclasses import replace
from typing import Any

from vit_demo.model import ViTConfig
from vit_demo.sentences import joined, sentence
from vit_demo.weights.imagenet import CLIP, IMAGENET_DEFAULT, IMAGENET_INCEPTION, IMAGENET_LABELS
from vit_demo.weights.limits import MAX_GRID
from vit_demo.weights.preset import Preset
from vit_demo.words.texts import DEFAULT_WORDS


def offered_patch_sizes(image_size: int, native: int) -> tuple[int, ...]:
    """Patch sizes offered for weights trained at one size: divisors of the image from half to three times that size."""
    return tuple(
        p
        for p in range(1, image_size + 1)
        if p == native or (image_size % p == 0 and native <= 2 * p and p <= 3 * native and image_size // p <= MAX_GRID)
    )


def _vit_config(letter: str, **changes: object) -> ViTConfig:
    """The config of a ViT-Ti, ViT-S or ViT-B."""
    width, heads = {"ti": (192, 3), "s": (384, 6), "b": (768, 12)}[letter]
    return ViTConfig(**{"embed_dim": width, "num_heads": heads, **changes})  # type: ignore[arg-type]


def _hub_preset(
    name: str,
    title: str,
    repo: str,
    config: ViTConfig,
    note: str,
    *,
    patch_sizes: tuple[int, ...] = (),
    parameters: int | None = None,
    **others: Any,
) -> Preset:
    usual = {
        "labels": IMAGENET_LABELS if config.num_classes else (),
        "flexible": bool(patch_sizes),
        "library": "timm" if parameters else "",
        "revision": "main",
        "crop_fraction": 0.9,
        **IMAGENET_INCEPTION,
    }
    return Preset(
        name=name,
        title=title,
        task="photos",
        config=config,
        patch_sizes=patch_sizes or offered_patch_sizes(config.image_size, config.patch_size),
        default_patch_size=config.patch_size,
        source="hub",
        repo=repo,
        parameters=parameters,
        note=note,
        **usual | others,
    )


def _word_preset(name: str, title: str, repo: str, config: ViTConfig, note: str, **others: Any) -> Preset:
    """A network of transformers with a text tower, at the patch size that it was trained at."""
    words: dict[str, Any] = {"labels": DEFAULT_WORDS, "takes_words": True, "library": "transformers", "flexible": False}
    usual = words | CLIP | {"crop_mode": "floor", "crop_fraction": 1.0}
    config = replace(config, num_classes=len(DEFAULT_WORDS))
    return _hub_preset(name, title, repo, config, note, patch_sizes=(config.patch_size,), **usual | others)


_FLEXIVIT_PATCH_SIZES = tuple(p for p in range(8, 49) if 240 % p == 0)
_WORDS_NOTE = "ImageNet top-1 {0}\u00a0% with the classes' names as words (published)."
_NATIVE_NOTE = "Trained at 16 px; ImageNet top-1 {0}\u00a0% (published)."

HUB_PRESETS: tuple[Preset, ...] = (
    _hub_preset(
        "vit-ti16",
        sentence("{0}, 1,000 classes", "ViT-Ti/16"),
        "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k",
        _vit_config("ti"),
        sentence(_NATIVE_NOTE, 75.5),
        revision="7d3afdd0cf93ad84d986eb2d6bcc5812ebd0b106",
    ),
    _hub_preset(
        "vit-s16",
        sentence("{0}, 1,000 classes", "ViT-S/16"),
        "timm/vit_small_patch16_224.augreg_in21k_ft_in1k",
        _vit_config("s"),
        sentence(_NATIVE_NOTE, 81.4),
        revision="7e2c55630205e1266030f18370f4c6ed1a514b52",
    ),
    _hub_preset(
        "vit-b16",
        sentence("{0}, 1,000 classes", "ViT-B/16"),
        "timm/vit_base_patch16_224.augreg_in21k_ft_in1k",
        _vit_config("b"),
        sentence(_NATIVE_NOTE, 84.5),
        revision="2ec9fb3d7bb664aac471ac44582c94d18de33780",
    ),
    _hub_preset(
        "deit-ti16",
        sentence("{0}, 1,000 classes", "DeiT-Ti/16"),
        "timm/deit_tiny_patch16_224.fb_in1k",
        _vit_config("ti"),
        sentence(_NATIVE_NOTE, 72.2),
        **IMAGENET_DEFAULT,
        revision="80e968688553f219e4a86f940ed945a23709c16f",
    ),
    *(
        _hub_preset(
            f"flexivit-{letter}",
            sentence("{0}, 1,000 classes, any patch size", f"FlexiViT-{letter.upper()}"),
            f"timm/flexivit_{size}.1200ep_in1k",
            _vit_config(letter, image_size=240, pos_embed_prefix=False),
            sentence(
                "The same weights were trained with all these patch sizes; ImageNet top-1 {0}\u00a0% (published).",
                accuracy,
            ),
            patch_sizes=_FLEXIVIT_PATCH_SIZES,
            crop_fraction=0.95,
            revision=revision,
        )
        for letter, size, accuracy, revision in (
            ("s", "small", 82.6, "main"),  # no commit of it was found
            ("b", "base", 84.7, "495667866514ad9af81d26ed070e8c10532cf3f9"),
        )
    ),
    _hub_preset(
        "dinov2-s14",
        sentence("{0} with registers, no classes", "DINOv2-S/14"),
        "timm/vit_small_patch14_reg4_dinov2.lvd142m",
        _vit_config(
            "s",
            image_size=518,
            patch_size=14,
            num_classes=0,
            num_registers=4,
            layer_scale=1e-5,
            pos_embed_prefix=False,
        ),
        "Self-supervised, no classifier head; trained at 14 px, other patch sizes are resampled.",
        **IMAGENET_DEFAULT,
        crop_fraction=1.0,
        revision="c04b5193082a8d5b0c4856c7937384a48136c5de",
    ),
    _hub_preset(
        "deit3-s16",
        sentence("{0}, 1,000 classes", "DeiT III-S/16"),
        "timm/deit3_small_patch16_224.fb_in1k",
        _vit_config("s", layer_scale=1e-6, pos_embed_prefix=False),
        joined(sentence(_NATIVE_NOTE, 81.4), "Apache-2.0 licence."),
        **IMAGENET_DEFAULT,
    ),
    _hub_preset(
        "dinov3-s16",
        sentence("{0} with registers, no classes", "DINOv3-S/16"),
        "timm/vit_small_patch16_dinov3.lvd1689m",
        _vit_config("s", image_size=256, num_classes=0, num_registers=4, pool="mean"),
        "Self-supervised, rotary positions, no classifier head. Meta's DINOv3 licence.",
        **IMAGENET_DEFAULT,
        crop_fraction=1.0,
        revision="3bf4720a82ec2066db88137180ff1f83a675cef0",
        parameters=21_586_944,
    ),
    _hub_preset(
        "eva02-ti14",
        sentence("{0}, 1,000 classes", "EVA-02-Ti/14"),
        "timm/eva02_tiny_patch14_336.mim_in22k_ft_in1k",
        _vit_config("ti", image_size=336, patch_size=14, pool="mean"),
        joined(
            sentence(
                "Rotary positions and a gated MLP; trained at 14 px; ImageNet top-1 {0}\u00a0% (published).", 80.6
            ),
            "MIT licence.",
        ),
        **CLIP,
        crop_fraction=1.0,
        revision="99c6ce3db85dfb8c68ee38e01cf5bc7e2a988122",
        parameters=5_756_584,
    ),
    _hub_preset(
        "beit-b16",
        sentence("{0}, 1,000 classes", "BEiT-B/16"),
        "timm/beit_base_patch16_224.in22k_ft_in22k_in1k",
        _vit_config("b", pool="mean"),
        joined(
            sentence("Relative positions; trained at 16 px; ImageNet top-1 {0}\u00a0% (published).", 85.2),
            "Apache-2.0 licence.",
        ),
        revision="82a1e05e2150ab0e585c6600213221fbfab35d89",
        parameters=86_530_984,
        has_mask=True,
    ),
    _word_preset(
        "tinyclip-8m",
        sentence("{0}: your own words", "TinyCLIP-8M/16"),
        "wkcn/TinyCLIP-ViT-8M-16-Text-3M-YFCC15M",
        ViTConfig(embed_dim=256, depth=10, num_heads=4),
        joined(sentence(_WORDS_NOTE, 41.1), "MIT licence."),
        parameters=23_446_017,
        revision="a2a8c6eaa2549ad66eb7c31b85022bf58273a26c",
    ),
    _word_preset(
        "tinyclip-39m",
        sentence("{0}: your own words", "TinyCLIP-39M/16"),
        "wkcn/TinyCLIP-ViT-39M-16-Text-19M-YFCC15M",
        ViTConfig(embed_dim=512, depth=12, num_heads=8),
        joined(sentence(_WORDS_NOTE, 63.5), "MIT licence."),
        parameters=83_101_185,
        revision="07a4b0bc751cb64fecd2b661c048c1dd98d69444",
    ),
    _word_preset(
        "clip-b16",
        sentence("{0}: your own words", "MetaCLIP-B/16"),
        "facebook/metaclip-b16-fullcc2.5b",
        _vit_config("b"),
        joined(sentence(_WORDS_NOTE, 72.1), "CC BY-NC 4.0 licence."),
        parameters=149_620_737,
    ),
    _word_preset(
        "siglip-b16",
        sentence("{0}: your own words", "SigLIP-B/16"),
        "google/siglip-base-patch16-224",
        _vit_config("b", class_token=False, pool="mean"),
        joined(
            "Each word has a probability of its own; no class token: attention pooling reads the patches.",
            sentence(_WORDS_NOTE, 76.0),
            "Apache-2.0 licence.",
        ),
        **{**IMAGENET_INCEPTION, "crop_mode": "squash", "scores": "sigmoid"},
        parameters=203_155_970,
        revision="7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed",
    ),
)
"""The presets of the Hub in the order of the page's menu, after the bundled ones."""
