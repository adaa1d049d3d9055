"""What the page states about the package is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo import defaults, images, web
from vit_demo.render import overlay
from vit_demo.weights import PRESETS

FAITHFULNESS = Path(web.__file__).parent / "frontend" / "stage" / "views" / "faithfulness" / "view.js"
DOCS = Path(web.__file__).parents[2] / "docs"


@pytest.mark.parametrize(("side", "smooth"), [(9, False), (10, False), (11, True)])
def test_a_map_of_a_hundred_patches_is_drawn_as_its_cells(side: int, smooth: bool) -> None:
    values = np.zeros((side, side), np.float32)
    values[side // 2, side // 2] = 1
    shown = np.asarray(overlay(Image.new("RGB", (side, side), "white"), values, alpha=1.0, display_size=16 * side))
    assert (len(np.unique(shown.reshape(-1, 3), axis=0)) > 2) == smooth


def test_a_removed_patch_is_replaced_by_the_colour_that_normalization_maps_to_0() -> None:
    for name in ("vit-b16", "photos-tiny", "deit-ti16"):
        preset = PRESETS[name]
        colour = tuple(round(255 * mean) for mean in preset.mean)
        side = preset.image_size
        options = {"mean": preset.mean, "std": preset.std, "mode": "squash", "crop_fraction": 1.0}
        picture = Image.new("RGB", (side, side), colour)
        pixels, _ = images.preprocess(picture, image_size=side, patch_size=preset.default_patch_size, **options)
        torch.testing.assert_close(pixels, torch.zeros_like(pixels), atol=0.6 / 255 / min(preset.std), rtol=0)
    for text in (path.read_text(encoding="utf-8") for path in (FAITHFULNESS, DOCS / "explanations.md")):
        assert "the colour that normalization maps to 0" in " ".join(text.split())
        assert "training pictures" not in text


def test_the_documents_state_the_limit_of_a_picture_file() -> None:
    security = " ".join((DOCS.parent / "SECURITY.md").read_text(encoding="utf-8").split())
    assert f"an upload {defaults.MAX_PICTURE_BYTES // 10**6} MB" in security
