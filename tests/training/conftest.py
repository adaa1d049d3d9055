import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from vit_demo.model import ViTConfig
from vit_demo.training import recipes
from vit_demo.training.data import PHOTO_SETS
from vit_demo.training.recipes import Recipe
from vit_demo.weights import PRESETS

TINY = ViTConfig(
    image_size=28, patch_size=14, position_grid=4, in_channels=1, num_classes=10, embed_dim=16, depth=2, num_heads=2
)


@pytest.fixture
def data(tmp_path):
    """Ten kinds of bright square, one kind a digit, as ``mnist.npz``: 5,320 to train and choose by, 40 to test."""
    rng = np.random.default_rng(0)

    def draw(count):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = rng.integers(0, 30, (count, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, col = divmod(int(label), 4)
            image[4 + 7 * row : 10 + 7 * row, 1 + 7 * col : 7 + 7 * col] = 250
        return images, labels

    train, test = draw(5320), draw(40)
    np.savez(
        tmp_path / "mnist.npz", train_images=train[0], train_labels=train[1], test_images=test[0], test_labels=test[1]
    )
    return tmp_path


@pytest.fixture
def recipe(monkeypatch):
    """A recipe that takes a second, under the name of a bundled preset."""
    tiny = Recipe(
        patch_weights={7: 0.5, 14: 0.5},
        keep={7: 0.75},
        epochs=3,
        batch_size=32,
        precision="fp32",
        learning_rate=4e-3,
        ema=0.9,
        augment=False,
        mix=0.1,
    )
    monkeypatch.setitem(recipes.RECIPES, "digits-tiny", tiny)
    preset = replace(PRESETS["digits-tiny"], config=TINY, patch_sizes=(7, 14), default_patch_size=7)
    monkeypatch.setitem(PRESETS, "digits-tiny", preset)
    return tiny


@pytest.fixture
def photos(tmp_path):
    """Both photo sets with two classes of plain colours each: 40 photos to train and choose by, 4 to test."""
    rng = np.random.default_rng(0)
    for name in PHOTO_SETS.values():
        arrays = {"class_names": np.array(["a", "b"]), "wnids": np.array(["n1", "n2"])}
        for part, count in (("train", 40), ("val", 4)):
            files = []
            for colour in rng.integers(0, 255, (count, 3)):
                buffer = io.BytesIO()
                Image.new("RGB", (12, 12), tuple(int(c) for c in colour)).save(buffer, "png")
                files.append(buffer.getvalue())
            arrays[f"{part}_blob"] = np.frombuffer(b"".join(files), np.uint8)
            arrays[f"{part}_offsets"] = np.cumsum([0, *(len(file) for file in files)])
            arrays[f"{part}_labels"] = np.arange(count, dtype=np.uint8) * 2 // count
        np.savez(tmp_path / name, **arrays)
    return tmp_path
