"""A pretrained teacher is asked once, of the right classes, and its student learns what it said and what it saw."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.cli import main
from vit_demo.train import recipes, run
from vit_demo.train.answers import SIDE, TEACHER, Answers, ask, load_teacher
from vit_demo.train.augment import cut, draw_crops
from vit_demo.train.data import Labelled
from vit_demo.train.loop import Trainer
from vit_demo.train.recipes import Recipe
from vit_demo.vit import ViT, ViTConfig
from vit_demo.vit.config import VIT_TINY
from vit_demo.zoo import PRESETS
from vit_demo.zoo.checkpoints import load_checkpoint, save_checkpoint

CPU = torch.device("cpu")
SMALL = ViTConfig(image_size=12, patch_size=6, position_grid=4, num_classes=4, embed_dim=16, depth=1, num_heads=2)


def network(**fields) -> ViT:
    """A small network whose answers differ from photo to photo."""
    model = ViT(replace(SMALL, **fields)).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    return model


@pytest.fixture
def teacher() -> ViT:
    return network(image_size=SIDE, patch_size=48)


@pytest.fixture
def data() -> Labelled:
    return Labelled(torch.randint(0, 256, (24, 3, 12, 12), dtype=torch.uint8), torch.arange(24) % 4, tuple("abcd"))


@pytest.fixture
def preset(monkeypatch):
    """``photos-tiny`` made small, with a recipe of a second."""
    small = replace(
        PRESETS["photos-tiny"], config=SMALL, patch_sizes=(3, 6), default_patch_size=3, labels=tuple("abcd")
    )
    monkeypatch.setitem(PRESETS, "photos-tiny", small)
    recipe = Recipe(
        patch_weights={3: 0.5, 6: 0.5}, epochs=6, batch_size=12, precision="fp32", learning_rate=1e-2, ema=0.5, mix=0.3,
        views=2, distil=0.9, hint=3.0,
    )  # fmt: skip
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    return small


def test_it_answers_about_the_crops_that_the_student_gets(teacher, data, tmp_path):
    answers = ask(teacher, data, 2, 0, tmp_path, CPU, batch_size=5)
    assert answers.probabilities.shape == (2, 24, 4) and answers.features.shape == (2, 24, 16)
    assert not torch.equal(answers.crops[0], answers.crops[1])
    crops, said, seen = answers.of(3, torch.tensor([7]))  # the second view's turn
    assert torch.equal(crops[0], answers.crops[1, 7])
    photo = cut(data.images[7:8].float() / 255, crops)[0].permute(1, 2, 0)
    large = [Image.fromarray(photo[:, :, c].numpy()).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for c in range(3)]
    x = torch.from_numpy(np.stack([np.asarray(channel) for channel in large]))[None].clamp(0, 1) * 2 - 1
    assert torch.allclose(teacher(x).softmax(1), said, atol=0.02)  # it answers in bfloat16
    features = answers.features.float().flatten(0, 1)
    assert features.mean(0).abs().max() < 1e-2 and (features.std(0) - 1).abs().max() < 1e-2
    assert seen.shape == (1, 16)


def test_what_was_asked_once_is_not_asked_again(teacher, data, tmp_path, monkeypatch):
    first = ask(teacher, data, 1, 0, tmp_path, CPU)
    monkeypatch.setattr(ViT, "forward", lambda *_: pytest.fail("asked again"))
    monkeypatch.setattr(ViT, "encode", lambda *_: pytest.fail("asked again"))
    second = ask(teacher, data, 1, 0, tmp_path, CPU)
    assert all(torch.equal(getattr(first, key), getattr(second, key)) for key in ("crops", "probabilities", "features"))


def test_the_teacher_keeps_the_classes_of_the_photo_sets_in_their_order(photos):
    model = ViT(VIT_TINY.with_classes(1000))
    np.savez(photos / TEACHER, **{name: tensor.numpy() for name, tensor in model.state_dict().items()})
    with (photos / "classes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([["wnid", "class_index"], ["n2", 5], ["n1", 900]])
    teacher = load_teacher(photos)
    assert torch.equal(teacher.head.weight, model.head.weight[[900, 5, 900, 5]])
    (photos / TEACHER).unlink()
    with pytest.raises(FileNotFoundError, match=TEACHER):
        load_teacher(photos)


def test_a_student_learns_the_features_and_ships_a_head_of_the_classes_only(preset, data, teacher, tmp_path):
    answers = ask(teacher, data, 1, 0, tmp_path, CPU)
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, answers=answers, epochs=30)
    assert trainer.model.head.weight.shape == (4 + 16, 16) and trainer.shipped.head.weight.shape == (4, 16)
    trainer.run(data)
    with (tmp_path / "photos-tiny.csv").open() as file:
        rows = list(csv.DictReader(file))
    # The guess of someone who has learned nothing costs the weight of the hint times a variance of 1.
    assert float(rows[0]["loss"]) > 3 and float(rows[-1]["loss"]) < float(rows[0]["loss"]) - 1
    wide, narrow = trainer.average.module.eval(), trainer.shipped.eval()
    x = torch.randn(2, 3, 12, 12)
    assert torch.equal(wide(x, patch_size=3)[:, :4], narrow(x, patch_size=3))


def test_without_a_hint_the_head_has_the_classes_only(preset, data, monkeypatch, tmp_path):
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", replace(recipes.RECIPES["photos-tiny"], hint=0.0))
    answers = Answers(draw_crops(24)[None], torch.rand(1, 24, 4).softmax(2), torch.randn(1, 24, 16))
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, answers=answers, epochs=1)
    trainer.run()
    assert trainer.shipped is trainer.average.module and trainer.shipped.head.weight.shape == (4, 16)


def test_a_training_may_begin_with_earlier_weights(preset, photos, teacher, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run, "load_teacher", lambda folder: teacher)
    begin = network()
    save_checkpoint(tmp_path / "begin.safetensors", begin, {"seed": 7})
    taken = []
    train = Trainer.run
    monkeypatch.setattr(Trainer, "run", lambda self, watched: (taken.append(self.shipped), train(self, watched)))
    command = ["train", "photos-tiny", "--data", str(photos), "--out", str(tmp_path / "runs"), "--epochs", "1"]
    assert main([*command, "--start", str(tmp_path / "begin.safetensors")]) == 0
    half = begin.half().float().state_dict()
    assert all(torch.equal(tensor, half[name]) for name, tensor in taken[0].state_dict().items())
    shipped, record = load_checkpoint(tmp_path / "runs" / "photos-tiny.safetensors")
    assert record["start"] == {"seed": 7} and record["command"].endswith("--epochs 1 --start begin.safetensors")
    assert not torch.equal(shipped.head.weight, half["head.weight"])
    capsys.readouterr()
    save_checkpoint(tmp_path / "other.safetensors", network(embed_dim=8), {})
    assert main([*command, "--start", str(tmp_path / "other.safetensors")]) == 2
    assert "other.safetensors" in capsys.readouterr().err
    assert main([*command, "--start", str(tmp_path / "none.safetensors")]) == 2
