"""The example photos and the model that is bundled for photos."""

import pytest

import vit_demo
from vit_demo.web.example_photos import EXAMPLE_PHOTOS
from vit_demo.weights import PRESETS

DOUBTED = "tiger"  # not among the classes
WORDS = {"cat": "tabby cat", "german-shepherd": "German shepherd", "mountains": "alp"}


@pytest.mark.parametrize("patch_size", PRESETS["photos-tiny"].patch_sizes)
def test_every_example_is_recognised_with_confidence_but_the_one_that_is_not_among_the_classes(patch_size: int):
    for name, example in EXAMPLE_PHOTOS.items():
        result = vit_demo.explore(example.path, "photos-tiny", patch_size)
        assert result.is_confident == (name != DOUBTED), name
        assert name == DOUBTED or result.top(1)[0][0] == WORDS.get(name, name)
