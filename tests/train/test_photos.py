import io

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.train.data import PHOTO_SETS, load_photos


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


def test_a_twentieth_of_every_class_is_held_back_and_no_photo_is_in_two_parts(photos):
    parts = {part: load_photos(photos, part, 8) for part in ("train", "validation", "test")}
    assert {part: found.labels.bincount().tolist() for part, found in parts.items()} == {
        "train": [19, 19, 19, 19],
        "validation": [1, 1, 1, 1],
        "test": [2, 2, 2, 2],
    }
    every = torch.cat([found.images for found in parts.values()])
    assert every.shape == (88, 3, 8, 8)
    assert len({image.numpy().tobytes() for image in every}) == 88
