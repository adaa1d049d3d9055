import torch

from vit_demo.training.data import load_photos


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
