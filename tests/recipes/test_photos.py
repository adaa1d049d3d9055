import csv
import json
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from recipes import photos as photos_module
from recipes.__main__ import main
from recipes.image_dataset import OUTLIER, UNLABELLED, ImageDataset
from recipes.photo_outliers import KINDS, evaluation_photo_outliers, make_photo_outliers
from recipes.photos import difference_hash, is_duplicate, load_photo_set, load_photos
from vit_demo.images.photo_preprocess import preprocess
from vit_demo.model import ViT, ViTConfig
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import save_checkpoint


def test_a_twentieth_of_every_class_is_validation_data_and_the_splits_share_no_photo(photos):
    parts = {part: load_photos(photos, part, 12) for part in ("train", "validation", "test")}
    assert {part: found.labels.bincount().tolist() for part, found in parts.items()} == {
        "train": [19, 19, 19, 19],
        "validation": [1, 1, 1, 1],
        "test": [2, 2, 2, 2],
    }
    assert parts["train"].classes == tuple("abcd")
    every = [image for found in parts.values() for image in found.images]
    assert len(every) == 88 and {tuple(image.shape) for image in every} == {(3, 12, 12)}
    assert len({image.numpy().tobytes() for image in every}) == 88


def test_scenes_are_balanced_and_without_duplicates_of_validation_photos(scenes, monkeypatch):
    monkeypatch.setattr(photos_module, "PHOTOS_PER_CLASS", 52)
    train, held_back = load_photos(scenes, "train", 36), load_photos(scenes, "validation", 36)
    assert held_back.labels.tolist() == [0, 1, 2, 3, 0, 0, 0], "photos 9, 19 and 29 of the real ones"
    real, pool = train.labels[76:] >= 0, train.labels[76:] == UNLABELLED
    assert (real | pool).all()
    # 27 of "a" are not held back, one of them is the same as one that is. 6 of "b", 8 times as often.
    assert train.labels[76:][real].bincount().tolist() == [26, 6]
    draws = train.weights[76:][real] / photos_module.DRAWS_PER_EPOCH["real_photos50_train"]
    assert draws.tolist() == pytest.approx([2.0] * 26 + [8.0] * 6)
    # 38 of the pool are not held back, one of them is the same as a real photo that is.
    assert pool.sum() == 37
    held = difference_hash(load_photo_set(scenes, "real_photos50_train", "validation", None).images)
    assert not is_duplicate(difference_hash(train.images), held).any()


def test_training_photos_are_whole_and_others_are_cropped_as_on_the_page(scenes):
    train, held_back = load_photos(scenes, "train", 36), load_photos(scenes, "validation", 12)
    assert {tuple(image.shape) for image in train.images[76:]} == {(3, 12, 36)}
    with np.load(scenes / "real_photos50_train.npz") as file:
        start, end = file["train_offsets"][9:11]
        (scenes / "photo.png").write_bytes(file["train_blob"][start:end].tobytes())
    photo = Image.open(scenes / "photo.png").convert("RGB")
    shown, _ = preprocess(photo, image_size=12, patch_size=12, mean=(0, 0, 0), std=(1, 1, 1))
    assert torch.allclose(held_back.images[4] / 255, shown[0], atol=1e-6)


def test_each_validation_set_has_the_same_weight(scenes):
    validation = load_photos(scenes, "validation", 8)
    assert validation.weights.tolist() == pytest.approx([1 / 2] * 4 + [1 / 3] * 3)


def test_images_are_drawn_as_often_as_their_weights_say():
    torch.manual_seed(0)
    weights = torch.tensor([0.5, 1.5, 1.0, 2.0, 0.25, 0.75])
    data = ImageDataset(torch.zeros(6, 1, 1, 1), torch.zeros(6), (), weights)
    epochs = torch.stack([data.sample_epoch().bincount(minlength=6) for _ in range(2000)])
    assert data.epoch_size == 6 and set(epochs.sum(1).tolist()) == {6}
    assert torch.allclose(epochs.float().mean(0), weights, atol=0.06)


def test_a_photo_is_a_duplicate_of_itself_stored_again_and_of_no_other():
    torch.manual_seed(0)
    images = torch.nn.functional.interpolate(torch.rand(5, 3, 12, 12), (90, 90), mode="bicubic").clamp(0, 1)
    stored = [Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).resize((70, 70)) for image in images]
    again = torch.stack([torch.from_numpy(np.array(image)).permute(2, 0, 1) for image in stored])
    hashes, others = difference_hash((images * 255).byte()), difference_hash(again)
    assert hashes.shape == (5, 64)
    for i in range(5):
        assert is_duplicate(hashes, others[i : i + 1]).tolist() == [j == i for j in range(5)]


def test_generated_outliers_differ_from_each_other_and_follow_from_the_seed():
    drawn, again, other = (torch.stack(make_photo_outliers(80, seed, 24).images) for seed in (3, 3, 4))
    assert drawn.shape == (80, 3, 24, 24) and drawn.dtype == torch.uint8
    assert set(make_photo_outliers(8, 3, 24).labels.tolist()) == {OUTLIER}
    assert torch.equal(drawn, again) and not torch.equal(drawn, other)
    assert len({image.numpy().tobytes() for image in drawn}) > 60, "some blanks are alike"
    large = torch.stack(make_photo_outliers(40, 3, 96).images).float()
    blank, noise = large[0::4], large[1::4]
    assert blank.std((2, 3)).mean() < noise.std((2, 3)).mean() / 4
    unseen = evaluation_photo_outliers(24, 5)
    assert set(unseen) == set(KINDS) and all(len(found) == 5 for found in unseen.values())


def test_drawings_have_each_of_four_shapes_equally_often(monkeypatch):
    pen, rng = Mock(), np.random.default_rng(0)
    monkeypatch.setattr("recipes.photo_outliers.ImageDraw.Draw", lambda image: pen)
    for _ in range(400):
        KINDS["drawing"](rng, 8)
    points = [len(call.args[0]) for call in pen.line.call_args_list]
    scribbles = sum(count > 6 for count in points)
    counts = [pen.rectangle.call_count, pen.ellipse.call_count, len(points) - scribbles, scribbles]
    assert np.divide(counts, sum(counts)) == pytest.approx(0.25, abs=0.03)


@pytest.fixture
def small_preset(scenes, monkeypatch):
    """``photos-tiny`` made small, untrained, in the folder of the data; with photos of other things beside them."""
    torch.manual_seed(0)
    config = ViTConfig(image_size=12, patch_size=6, num_classes=4, embed_dim=16, depth=1, num_heads=2)
    preset = replace(
        PRESETS["photos-tiny"], config=config, patch_sizes=(3, 6), default_patch_size=3, labels=tuple("abcd")
    )
    monkeypatch.setitem(PRESETS, "photos-tiny", preset)
    model = ViT(config)
    torch.nn.init.normal_(model.head.weight, std=2.0)
    save_checkpoint(scenes / "photos-tiny.safetensors", model, {})
    (scenes / "imagenet_samples" / "images").mkdir(parents=True)
    with (scenes / "imagenet_samples" / "index.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["wnid", "file"])
        for i in range(6):  # two of them are of known classes
            table.writerow([f"n{i}", f"{i}.png"])
            picture = Image.effect_noise((20, 16), 200).convert("RGB")
            picture.save(scenes / "imagenet_samples" / "images" / f"{i}.png")
    return preset


def test_evaluate_reports_real_photos_of_both_label_sets_separately_and_what_is_rejected(small_preset, scenes, capsys):
    command = ["evaluate", "photos-tiny", "--data", str(scenes), "--weights", str(scenes)]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    first, second = "real_photos50, 2 classes of tiny_imagenet40", "real_photos50, 2 classes of imagenette160"
    accuracy = report["accuracy"]
    assert set(accuracy) == {"tiny_imagenet40", "imagenette160", "real_photos50", first, second}
    assert set(report["calibration_error"]) == set(accuracy)
    for p in ("3", "6"):
        assert accuracy["real_photos50"][p] * 8 == pytest.approx(accuracy[first][p] * 5 + accuracy[second][p] * 3)
        for name in accuracy:
            wrong, rejected = report["wrong_but_confident"][name][p], report["correct_but_rejected"][name][p]
            assert 0 <= wrong <= 1 - accuracy[name][p] + 1e-6 and 0 <= rejected <= 1
            assert 0 <= report["calibration_error"][name][p] <= 1
        assert set(report["rejection_rate"]) == {*KINDS, "photos of other things"}
        assert report["rejection_rate"]["photos of other things"][p] * 4 % 1 == 0, "four photos of other classes"
    assert report["confidence_threshold"] == small_preset.confidence_threshold
    assert main(command) == 0
    printed = capsys.readouterr().out
    for words in ("accuracy, %", "wrong but confident, %", "correct but rejected, %", "rejection rate of outliers, %"):
        assert words in printed
    assert first in printed and second in printed and "photos of other things" in printed
