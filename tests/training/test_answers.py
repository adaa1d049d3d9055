"""A pretrained teacher is asked once, of the right classes, and its student learns what it said and what it saw."""

import csv
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

from vit_demo.cli import main
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.training import loop, recipes, run
from vit_demo.training.answers import KEPT, SIDE, TEACHER, Answers, among, ask, load_teacher
from vit_demo.training.augment import Mix, cut, draw_crops, mirror
from vit_demo.training.data import NO_CLASS, UNLABELLED, Labelled
from vit_demo.training.loop import Trainer
from vit_demo.training.recipes import Recipe
from vit_demo.training.student import Student, at_patches
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint, save_checkpoint

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
    return network(image_size=SIDE, patch_size=40)


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
        views=2, distil=0.9, hint=3.0, patch_hint=2.0,
    )  # fmt: skip
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    return small


def test_it_answers_about_the_crops_that_the_student_gets(teacher, data, tmp_path):
    answers = ask(teacher, data, 2, 0, tmp_path, CPU, batch_size=5)
    assert answers.probabilities.shape == (2, 24, 4) and answers.features.shape == (2, 24, 16)
    assert not torch.equal(answers.crops[0], answers.crops[1])
    batch = torch.tensor([7] * 20)
    crops, said, seen, patches = answers.of(3, batch)  # the second view's turn
    mirrored = crops[:, 0] < 0
    assert 0 < mirrored.sum() < 20 and torch.equal(crops, mirror(answers.crops[1, batch], mirrored))
    assert all(torch.equal(row, seen[0]) for row in seen) and seen.shape == (20, 16)
    assert all(torch.equal(row, said[0]) for row in said)
    # Where the photo is mirrored, so is what stands in it.
    assert all(torch.equal(patches[i], patches[~mirrored][0].flip(2 if m else ())) for i, m in enumerate(mirrored))
    photo = cut(data.images[7:8].float() / 255, answers.crops[1, 7:8])[0].permute(1, 2, 0)
    large = [Image.fromarray(photo[:, :, c].numpy()).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for c in range(3)]
    x = torch.from_numpy(np.stack([np.asarray(channel) for channel in large]))[None].clamp(0, 1) * 2 - 1
    assert torch.allclose(teacher(x).softmax(1), said[:1], atol=0.02)  # it answers in bfloat16
    for kept in (answers.features[0].float(), answers.patches[0].float().permute(0, 2, 3, 1).flatten(0, 2)):
        assert kept.mean(0).abs().max() < 1e-2 and (kept.std(0) - 1).abs().max() < 1e-2


def test_it_says_what_its_last_block_reads_of_each_two_by_two_patches(data, tmp_path):
    teacher = network(image_size=SIDE, patch_size=40, depth=2)
    given: list[torch.Tensor] = []
    teacher.blocks[1].attn.register_forward_pre_hook(lambda module, inputs: given.append(inputs[0].float()))
    answers = ask(teacher, data, 1, 0, tmp_path, CPU)
    tokens = torch.cat(given)[:, 1:]  # [24, 4 * 4, 16]
    corner = tokens[:, [10, 11, 14, 15]].mean(1)  # the last two rows and columns
    deviation, mean = torch.std_mean(tokens.unflatten(1, (2, 2, 2, 2)).mean((2, 4)), dim=(0, 1, 2))
    assert torch.allclose(answers.patches[0, :, :, 1, 1].float(), (corner - mean) / deviation, atol=0.02)


def test_what_was_asked_once_is_not_asked_again(teacher, data, tmp_path, monkeypatch):
    ask(teacher, data, 1, 0, tmp_path, CPU)
    (kept,) = tmp_path.glob("*.safetensors")
    save_file({"crops": torch.zeros(24, 4)}, kept)  # but this is not all there is to know
    first = ask(teacher, data, 1, 0, tmp_path, CPU)
    monkeypatch.setattr(ViT, "forward", lambda *_: pytest.fail("asked again"))
    monkeypatch.setattr(ViT, "encode", lambda *_: pytest.fail("asked again"))
    second = ask(teacher, data, 1, 0, tmp_path, CPU)
    assert all(torch.equal(getattr(first, key), getattr(second, key)) for key in KEPT)


@pytest.mark.parametrize("change", ["images", "labels", "aspects"])
def test_answers_about_other_photos_are_asked_for_anew(change, teacher, data, tmp_path):
    data = replace(data, aspects=torch.ones(24))
    ask(teacher, data, 1, 0, tmp_path / "kept", CPU)
    other = {"images": data.images.flip(0), "labels": torch.full((24,), UNLABELLED), "aspects": torch.full((24,), 2.0)}
    data = replace(data, **{change: other[change]})
    found, fresh = (ask(teacher, data, 1, 0, tmp_path / name, CPU) for name in ("kept", "fresh"))
    assert all(torch.equal(getattr(found, key), getattr(fresh, key)) for key in KEPT)


def test_the_less_a_teacher_sees_of_the_classes_the_more_evenly_it_shares_its_answer_out():
    probabilities = torch.tensor([0.15, 0.05, 0.7, 0.1]).repeat(4, 1)
    probabilities[3] = torch.tensor([0.6, 0.3, 0.1, 0.0])
    labels = torch.tensor([1, NO_CLASS, UNLABELLED, UNLABELLED])
    said = among((probabilities + 1e-12).log(), labels, 2)
    wanted = [[0.75, 0.25], [0.5, 0.5], [0.4 * 0.75 + 0.6 / 2, 0.4 * 0.25 + 0.6 / 2], [2 / 3, 1 / 3]]
    assert torch.allclose(said, torch.tensor(wanted), atol=1e-5)


def test_what_has_no_label_is_learned_as_the_teacher_has_it(preset, data, tmp_path, monkeypatch):
    recipe = replace(recipes.RECIPES["photos-tiny"], mix=0.0, hint=0.0, patch_hint=0.0, ema=0.0)
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", recipe)
    said = torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(1, 24, 4)
    answers = Answers(draw_crops(24)[None], said, torch.zeros(1, 24, 16), torch.zeros(1, 24, 16, 2, 2))
    data = replace(data, labels=torch.where(torch.arange(24) % 2 == 0, UNLABELLED, NO_CLASS))
    targets = []
    monkeypatch.setattr(
        loop.F, "cross_entropy", lambda x, t, **_: (targets.append(t), (x.log_softmax(1) * -t).sum(1).mean())[1]
    )
    Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, answers=answers, epochs=1).run()
    assert torch.allclose(torch.cat(targets), said[0])


def test_the_teacher_keeps_the_classes_of_the_photo_sets_in_their_order(photos):
    model = ViT(VIT_TINY.with_classes(1000))
    np.savez(photos / TEACHER, **{name: tensor.numpy() for name, tensor in model.state_dict().items()})
    with (photos / "classes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([["wnid", "class_index"], ["n3", 7], ["n2", 5], ["n1", 900]])
    teacher = load_teacher(photos)
    assert torch.equal(teacher.head.weight[:4], model.head.weight[[900, 5, 900, 5]])
    assert torch.equal(teacher.head.weight[4:], model.head.weight[[7]]), "and then those that photos may show besides"
    (photos / TEACHER).unlink()
    with pytest.raises(FileNotFoundError, match=TEACHER):
        load_teacher(photos)


@pytest.mark.parametrize("hint", ["hint", "patch_hint"])
def test_a_student_learns_the_features_and_ships_the_network_alone(hint, preset, data, teacher, monkeypatch, tmp_path):
    only = {"hint": 0.0, "patch_hint": 0.0} | {hint: 10.0}
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", replace(recipes.RECIPES["photos-tiny"], mix=0.0, **only))
    answers = ask(teacher, data, 1, 0, tmp_path, CPU)
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, answers=answers, epochs=30)
    assert isinstance(trainer.model, Student) and isinstance(trainer.shipped, ViT)
    trainer.run(data)
    with (tmp_path / "photos-tiny.csv").open() as file:
        rows = list(csv.DictReader(file))
    # The guess of someone who has learned nothing costs the weight of the hint times a variance of 1.
    assert float(rows[0]["loss"]) > 10 and float(rows[-1]["loss"]) < float(rows[0]["loss"]) - 2
    wide, narrow = trainer.average.module.eval(), trainer.shipped.eval()
    x = torch.randn(2, 3, 12, 12)
    assert torch.equal(wide(x, patch_size=3)[0], narrow(x, patch_size=3))


def test_without_a_hint_the_network_is_trained_as_it_is(preset, data, monkeypatch, tmp_path):
    without = replace(recipes.RECIPES["photos-tiny"], hint=0.0, patch_hint=0.0)
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", without)
    shapes = (24, 4), (24, 16), (24, 16, 2, 2)
    answers = Answers(draw_crops(24)[None], *(torch.rand(1, *shape).softmax(2) for shape in shapes))
    trainer = Trainer(preset, "photos-tiny", data, tmp_path, device=CPU, answers=answers, epochs=1)
    trainer.run()
    assert trainer.shipped is trainer.average.module and isinstance(trainer.model, ViT)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_student_guesses_at_the_places_of_its_patches_whatever_they_are_mixed_of(p):
    images, maps = torch.rand(5, 3, 12, 12), torch.randn(5, 7, 2, 2)
    keep = torch.stack([torch.randperm(16)[:6] for _ in range(5)])
    for _ in range(8):  # MixUp at times, CutMix at others
        mixed, targets, share = Mix(p)(images, torch.eye(5))
        wanted = at_patches(maps, share, 3, keep)
        for i in range(5):
            neighbour, at = images[i - 1], share[0]
            assert torch.allclose(mixed[i], images[i] + at * (neighbour - images[i]), atol=1e-6)
            assert torch.isclose(targets[i, i - 1], share.mean(), atol=1e-5)
            for j, patch in enumerate(keep[i].tolist()):
                row, col = divmod(patch, 4)
                here = [F.interpolate(m[None], (4, 4), mode="bilinear")[0, :, row, col] for m in (maps[i], maps[i - 1])]
                part = at[3 * row : 3 * row + 3, 3 * col : 3 * col + 3].mean()
                assert torch.allclose(wanted[i, j], here[0] * (1 - part) + here[1] * part, atol=1e-5)
    assert torch.equal(at_patches(maps, torch.zeros(1, 12, 12), 6), maps.flatten(2).mT)


def test_a_training_may_begin_with_earlier_weights(preset, photos, teacher, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run, "load_teacher", lambda folder: teacher)
    begin = network()
    save_checkpoint(tmp_path / "begin.safetensors", begin, {"seed": 7})
    taken = []
    train = Trainer.run
    monkeypatch.setattr(
        Trainer, "run", lambda self, watched: (taken.append(deepcopy(self.shipped)), train(self, watched))
    )
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
