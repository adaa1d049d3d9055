import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from recipes import recipes
from recipes.photos import PHOTO_SETS
from recipes.recipes import Recipe
from vit_demo.model import ViTConfig
from vit_demo.weights import PRESETS

VALIDATION_DIGITS = 200
TINY = ViTConfig(
    image_size=28, patch_size=14, pos_embed_grid=4, in_channels=1, num_classes=10, embed_dim=16, depth=2, num_heads=2
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A bright square in ten positions, one for each digit, as ``mnist.npz``: 320, 200 and 40 of the three splits."""
    monkeypatch.setattr("recipes.digits.VALIDATION_DIGITS", VALIDATION_DIGITS)
    rng = np.random.default_rng(0)

    def draw(count):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = rng.integers(0, 30, (count, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, col = divmod(int(label), 4)
            image[4 + 7 * row : 10 + 7 * row, 1 + 7 * col : 7 + 7 * col] = 250
        return images, labels

    train, test = draw(320 + VALIDATION_DIGITS), draw(40)
    np.savez(
        tmp_path / "mnist.npz", train_images=train[0], train_labels=train[1], test_images=test[0], test_labels=test[1]
    )
    return tmp_path


@pytest.fixture
def recipe(monkeypatch):
    """A recipe that takes a second, for a small network, under the name of a bundled preset."""
    tiny = Recipe(
        patch_size_weights={7: 0.5, 14: 0.5},
        patch_drop_rates={7: 0.25},
        epochs=3,
        batch_size=32,
        bf16=False,
        learning_rate=4e-3,
        ema_decay=0.9,
        augment=False,
        mix_probability=0.1,
    )
    monkeypatch.setitem(recipes.RECIPES, "digits-tiny", tiny)
    preset = replace(PRESETS["digits-tiny"], config=TINY, patch_sizes=(7, 14), default_patch_size=7)
    monkeypatch.setitem(PRESETS, "digits-tiny", preset)
    return tiny


def photo_arrays(pictures, labels, part, **more):
    """The arrays of a photo set."""
    files = []
    for picture in pictures:
        buffer = io.BytesIO()
        picture.save(buffer, "png")
        files.append(buffer.getvalue())
    return {
        f"{part}_blob": np.frombuffer(b"".join(files), np.uint8),
        f"{part}_offsets": np.cumsum([0, *(len(file) for file in files)]),
        f"{part}_labels": np.asarray(labels),
    } | more


def noise_picture(rng, width=12, height=12):
    """Coarse noise, so that no two pictures have similar difference hashes."""
    cells = rng.integers(0, 255, (9, 9, 3), np.uint8)
    return Image.fromarray(cells).resize((width, height), Image.Resampling.NEAREST)


@pytest.fixture
def photos(tmp_path):
    """Both photo sets with two classes each: 40 photos to train and choose by, 4 to test."""
    rng = np.random.default_rng(0)
    for name in PHOTO_SETS:
        letters = "ab" if name == PHOTO_SETS[0] else "cd"
        arrays = {"class_names": np.array(list(letters)), "wnids": np.array(["n1", "n2"])}
        for part, count in (("train", 40), ("val", 4)):
            pictures = [noise_picture(rng) for _ in range(count)]
            arrays |= photo_arrays(pictures, np.arange(count, dtype=np.uint8) * 2 // count, part)
        np.savez(tmp_path / f"{name}.npz", **arrays)
    return tmp_path


@pytest.fixture
def scenes(photos):
    """The same folder with whole scenes, three times as wide as high: 30 of "a" and 6 of "b", 40 without a label."""
    rng = np.random.default_rng(1)
    classes = {"class_names": np.array(list("abcd"))}
    real = [noise_picture(rng, 36, 12) for _ in range(36)]
    pool = [noise_picture(rng, 36, 12) for _ in range(40)]
    pool[3] = real[9]  # one that is held back
    pool[4] = real[5]  # one that is not
    real[7] = real[19]  # held back, too
    labels = np.array([0] * 30 + [1] * 6, np.uint8)
    np.savez(photos / "real_photos50_train.npz", **photo_arrays(real, labels, "train", **classes))
    np.savez(photos / "photo_pool.npz", **photo_arrays(pool, [0] * 3 + [-1] * 37, "train", **classes))
    test = [noise_picture(rng, 36, 12) for _ in range(8)]
    np.savez(photos / "real_photos50.npz", **photo_arrays(test, [0, 0, 0, 1, 1, 2, 3, 3], "test", **classes))
    return photos
