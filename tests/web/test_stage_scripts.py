"""What the stage's scripts say and decide agrees with the package."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo import images, web
from vit_demo.render import overlay
from vit_demo.render.overlay import COARSE_PATCHES
from vit_demo.weights import PRESETS

STAGE = Path(web.__file__).parent / "components" / "stage"
DOCS = Path(web.__file__).parents[2] / "docs"


def script(name: str) -> str:
    return (STAGE / f"{name}.js").read_text(encoding="utf-8")


def test_page_and_package_smooth_a_map_from_the_same_number_of_patches() -> None:
    source = script("colours")
    constant = re.search(r"^const COARSE_PATCHES = (\d+);", source, re.MULTILINE)
    assert constant and int(constant[1]) == COARSE_PATCHES
    assert "const isCoarse = (result) => result.patches <= COARSE_PATCHES;" in source


@pytest.mark.parametrize(("side", "smooth"), [(9, False), (10, False), (11, True)])
def test_a_map_of_a_hundred_patches_is_drawn_as_its_cells(side: int, smooth: bool) -> None:
    values = np.zeros((side, side), np.float32)
    values[side // 2, side // 2] = 1
    shown = np.asarray(overlay(Image.new("RGB", (side, side), "white"), values, alpha=1.0, display_size=16 * side))
    assert (len(np.unique(shown.reshape(-1, 3), axis=0)) > 2) == smooth


def test_what_stands_in_for_a_removed_patch_is_the_colour_that_normalization_maps_to_0() -> None:
    for name in ("vit-b16", "photos-tiny", "deit-ti16"):
        preset = PRESETS[name]
        colour = tuple(round(255 * mean) for mean in preset.mean)
        side = preset.image_size
        options = {"mean": preset.mean, "std": preset.std, "mode": "squash", "crop_fraction": 1.0}
        picture = Image.new("RGB", (side, side), colour)
        pixels, _ = images.preprocess(picture, image_size=side, patch_size=preset.default_patch_size, **options)
        torch.testing.assert_close(pixels, torch.zeros_like(pixels), atol=0.6 / 255 / min(preset.std), rtol=0)
    for said in (script("believe"), (DOCS / "explanations.md").read_text(encoding="utf-8")):
        assert "the colour that normalization maps to 0" in " ".join(said.split())
        assert "training pictures" not in said
