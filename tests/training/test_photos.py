import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.cli import main
from vit_demo.images.preprocess import preprocess
from vit_demo.model import ViT, ViTConfig
from vit_demo.training import photos as photos_module
from vit_demo.training.data import NO_CLASS, UNLABELLED, Labelled
from vit_demo.training.not_photos import KINDS, not_photos, unseen_not_photos
from vit_demo.training.photos import balanced_rows, difference_hash, load_photo_set, load_photos, resemble
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import save_checkpoint


def test_a_twentieth_of_every_class_is_held_back_and_no_photo_is_in_two_parts(photos):
    parts = {part: load_photos(photos, part, 8) for part in ("train", "validation", "test")}
    assert {part: found.labels.bincount().tolist() for part, found in parts.items()} == {
        "train": [19, 19, 19, 19],
        "validation": [1, 1, 1, 1],
        "test": [2, 2, 2, 2],
    }
    assert parts["train"].classes == tuple("abcd")
    every = torch.cat([found.images for found in parts.values()])
    assert every.shape == (88, 3, 8, 8)
    assert len({image.numpy().tobytes() for image in every}) == 88


def test_scenes_join_balanced_and_without_what_resembles_a_photo_held_back(scenes, monkeypatch):
    monkeypatch.setattr(photos_module, "PER_CLASS", 60)
    train, held_back = load_photos(scenes, "train", 36), load_photos(scenes, "validation", 36)
    assert held_back.labels.tolist() == [0, 1, 2, 3, 0, 0, 0], "photos 9, 19 and 29 of the real ones"
    real, pool = train.labels[76:] >= 0, train.labels[76:] == UNLABELLED
    assert (real | pool).all()
    # 27 of "a" are not held back, one of them is the same as one that is; each counts twice. 6 of "b", 8 times each.
    assert train.labels[76:][real].bincount().tolist() == [2 * 26, 8 * 6]
    # 38 of the pool are not held back, one of them is the same as a real photo that is.
    assert pool.sum() == 37
    held = difference_hash(load_photo_set(scenes, "real_photos50_train", "validation", 36, squeeze=True).images)
    assert not resemble(difference_hash(train.images), held).any()


def test_training_photos_are_squeezed_and_others_are_cut_as_the_page_does(scenes):
    train, held_back = load_photos(scenes, "train", 36), load_photos(scenes, "validation", 12)
    assert set(train.aspects[:76].tolist()) == {1.0} and set(train.aspects[76:].tolist()) == {3.0}
    with np.load(scenes / "real_photos50_train.npz") as file:
        start, end = file["train_offsets"][9:11]
        (scenes / "photo.png").write_bytes(file["train_blob"][start:end].tobytes())
    photo = Image.open(scenes / "photo.png").convert("RGB")
    shown, _ = preprocess(photo, image_size=12, patch_size=12, mean=(0, 0, 0), std=(1, 1, 1))
    assert torch.allclose(held_back.images[4] / 255, shown[0], atol=1e-6)


def test_classes_with_few_photos_are_met_as_often_as_others_but_no_photo_too_often(monkeypatch):
    monkeypatch.setattr(photos_module, "PER_CLASS", 12)
    monkeypatch.setattr(photos_module, "MOST_REPEATS", 5)
    labels = torch.tensor([0] * 24 + [1] * 6 + [2] * 2 + [4])
    rows = balanced_rows(labels)
    assert labels[rows].bincount().tolist() == [24, 12, 10, 0, 5]
    assert rows.unique().tolist() == list(range(33))


def test_images_come_up_in_an_epoch_as_often_as_they_should():
    passes = torch.tensor([0.5, 1.5, 1.0, 2.0, 0.25, 0.75])
    data = Labelled(torch.zeros(6, 1, 1, 1), torch.zeros(6), (), passes=passes)
    generator = torch.Generator().manual_seed(0)
    epochs = torch.stack([data.epoch_rows(generator).bincount(minlength=6) for _ in range(2000)])
    assert data.epoch_length == 6 and set(epochs.sum(1).tolist()) == {6}
    assert ((epochs - passes).abs() < 1).all(), "rounded up or down"
    assert torch.allclose(epochs.float().mean(0), passes, atol=0.04)
    assert len({tuple(data.epoch_rows(generator).tolist()) for _ in range(20)}) > 10, "in another order each time"


def test_a_photo_resembles_itself_stored_again_and_no_other():
    torch.manual_seed(0)
    images = torch.nn.functional.interpolate(torch.rand(5, 3, 12, 12), (90, 90), mode="bicubic").clamp(0, 1)
    stored = [Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).resize((70, 70)) for image in images]
    again = torch.stack([torch.from_numpy(np.array(image)).permute(2, 0, 1) for image in stored])
    hashes, others = difference_hash((images * 255).byte()), difference_hash(again)
    assert hashes.shape == (5, 64)
    for i in range(5):
        assert resemble(hashes, others[i : i + 1]).tolist() == [j == i for j in range(5)]


def test_pictures_of_nothing_are_each_their_own_and_the_same_for_the_same_seed():
    pictures = not_photos(80, 3, 24)
    assert pictures.images.shape == (80, 3, 24, 24) and pictures.images.dtype == torch.uint8
    assert set(pictures.labels.tolist()) == {NO_CLASS} and pictures.aspects.tolist() == [1.0] * 80
    assert torch.equal(not_photos(80, 3, 24).images, pictures.images)
    assert not torch.equal(not_photos(80, 4, 24).images, pictures.images)
    assert len({image.numpy().tobytes() for image in pictures.images}) > 60, "some are blank alike"
    blank, noise = not_photos(40, 3, 96).images[0::4].float(), not_photos(40, 3, 96).images[1::4].float()
    assert blank.std((2, 3)).mean() < noise.std((2, 3)).mean() / 4
    unseen = unseen_not_photos(24, 5)
    assert set(unseen) == set(KINDS) and all(len(found) == 5 for found in unseen.values())


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


def test_evaluate_reports_real_photos_of_both_kinds_apart_and_what_it_is_sure_of(small_preset, scenes, capsys):
    command = ["evaluate", "photos-tiny", "--data", str(scenes), "--weights", str(scenes)]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    first, second = "real_photos50, 2 of tiny_imagenet40", "real_photos50, 2 of imagenette160"
    accuracy = report["accuracy"]
    assert set(accuracy) == {"tiny_imagenet40", "imagenette160", "real_photos50", first, second}
    for p in ("3", "6"):
        assert accuracy["real_photos50"][p] * 8 == pytest.approx(accuracy[first][p] * 5 + accuracy[second][p] * 3)
        for name in accuracy:
            wrong, doubted = report["wrong_but_sure"][name][p], report["right_but_not_sure"][name][p]
            assert 0 <= wrong <= 1 - accuracy[name][p] + 1e-6 and (0 <= doubted <= 1 or accuracy[name][p] == 0)
        assert set(report["not_sure"]) == {*KINDS, "photos of other things"}
        assert report["not_sure"]["photos of other things"][p] * 4 % 1 == 0, "four photos of other classes"
    assert main(command) == 0
    assert "wrong but sure" in capsys.readouterr().out


def test_what_is_sure_and_wrong_is_counted_of_all_and_what_is_right_and_doubted_of_the_right(small_preset):
    from vit_demo.training.evaluate import confidence_shares
    from vit_demo.training.scoring import Score

    sure, unsure = [5.0, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0]
    score = Score(torch.tensor([sure, sure, sure, unsure, unsure]), torch.tensor([0, 0, 1, 0, 1]))
    shares = confidence_shares(small_preset, {"photos": {3: score}})
    assert shares["wrong but sure"]["photos"][3] == pytest.approx(1 / 5)
    assert shares["right but not sure"]["photos"][3] == pytest.approx(1 / 3)
