import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from recipes import recipes, run
from recipes.__main__ import main
from recipes.datasets import labelled_sets
from recipes.digits import load_digits, load_other_digits
from recipes.distillation import ConvNet
from recipes.image_dataset import ImageDataset
from recipes.predictions import predict
from recipes.recipes import Recipe
from recipes.run import train_preset
from recipes.trainer import Trainer
from vit_demo.errors import InputError
from vit_demo.images import to_mnist
from vit_demo.model import ViT
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint

from .conftest import TINY

CPU = torch.device("cpu")


def trainer(data, path, *, network=None, digits=None, seed=0, **changes):
    """A run of the small preset by its recipe, of which some fields are changed."""
    preset, recipe = PRESETS["digits-tiny"], replace(recipes.RECIPES["digits-tiny"], **changes)
    torch.manual_seed(seed)
    return Trainer(
        preset, recipe, network or ViT(preset.config), digits or load_digits(data, "train"), path / "run.state.pt",
        device=CPU, seed=seed,
    )  # fmt: skip


def test_training_learns_and_evaluate_finds_the_accuracy_that_the_checkpoint_records(data, recipe, tmp_path, capsys):
    out = tmp_path / "runs"
    assert main(["train", "digits-tiny", "--data", str(data), "--out", str(out), "--seed", "1", "--epochs", "16"]) == 0
    rows = list(csv.DictReader((out / "digits-tiny.csv").open()))
    assert [row["epoch"] for row in rows] == [str(i + 1) for i in range(16)]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    _, record = load_checkpoint(out / "digits-tiny.safetensors")
    assert record["seed"] == 1 and record["epochs"] == 16 and "--seed 1 --epochs 16" in record["command"]
    assert record["test_accuracy"]["7"] > 0.5, "ten patterns that are easy to tell apart"
    capsys.readouterr()
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(out), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)["accuracy"]["mnist"]
    assert found == pytest.approx(record["test_accuracy"], abs=0.03)  # half precision


@pytest.mark.parametrize("optimiser", ["adamw", "nmuon"])
def test_an_interrupted_and_resumed_run_gives_bit_identical_weights(optimiser, data, recipe, tmp_path, monkeypatch):
    whole = trainer(data, tmp_path / "whole", optimiser=optimiser)
    whole.run(load_digits(data, "test"))
    first, steps = trainer(data, tmp_path / "parts", optimiser=optimiser), 0
    step = first.loss

    def press_ctrl_c_in_time(*arguments):
        nonlocal steps
        steps += 1
        if steps == 13:  # in the second of three epochs of ten steps
            raise KeyboardInterrupt
        return step(*arguments)

    first.loss = press_ctrl_c_in_time
    with pytest.raises(KeyboardInterrupt):
        first.run(load_digits(data, "test"))
    torch.manual_seed(99)  # as in another process
    second = trainer(data, tmp_path / "parts", optimiser=optimiser)
    second.resume()
    assert second.epoch == 1
    second.run(load_digits(data, "test"))
    ours, expected = (run.trained_network.state_dict() for run in (second, whole))
    assert all(torch.equal(tensor, ours[name]) for name, tensor in expected.items())
    logs = [list(csv.DictReader((tmp_path / name / "run.csv").open())) for name in ("whole", "parts")]
    for rows in logs:
        assert [row["epoch"] for row in rows] == ["1", "2", "3"]
        for row in rows:
            del row["seconds"]
    assert logs[0] == logs[1]


def test_the_log_counts_the_seconds_of_training_alone(data, recipe, tmp_path, monkeypatch):
    clock = SimpleNamespace(now=100.0, perf_counter=lambda: clock.now)

    def pass_seconds(seconds, result):
        clock.now += seconds
        return result

    monkeypatch.setattr("recipes.trainer.time", clock)
    monkeypatch.setattr(Trainer, "train_epoch", lambda self: pass_seconds(10, {"loss": 1.0}))
    monkeypatch.setattr("recipes.trainer.predict", lambda *_: pass_seconds(3, SimpleNamespace(accuracy=0.5)))
    trainer(data, tmp_path).run(load_digits(data, "validation"))
    assert [row["seconds"] for row in csv.DictReader((tmp_path / "run.csv").open())] == ["10.0", "20.0", "30.0"]


def test_ctrl_c_on_the_command_line_and_resume(data, recipe, tmp_path, monkeypatch, capsys):
    epoch = Trainer.train_epoch

    def press_ctrl_c(self):
        if self.epoch == 1:
            raise KeyboardInterrupt
        return epoch(self)

    command = ["train", "digits-tiny", "--data", str(data), "--out", str(tmp_path / "runs")]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", press_ctrl_c)
        assert main(command) == 130
    assert "--resume" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "digits-tiny.safetensors").exists()
    assert main([*command, "--resume", "--seed", "5"]) == 2
    assert "another seed" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    whole = trainer(data, tmp_path / "whole")
    whole.run()
    shipped, _ = load_checkpoint(tmp_path / "runs" / "digits-tiny.safetensors")
    assert torch.equal(shipped.cls_token, whole.trained_network.cls_token.half().float())


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"learning_rate": 3e-3}, "learning rate"),
        ({"patch_size_weights": {7: 1.0}}, "patch size weights"),
        ({"network": ViT(replace(TINY, depth=1))}, "network"),
        ({"digits": ImageDataset(torch.zeros(64, 1, 28, 28, dtype=torch.uint8), torch.zeros(64).long(), ())}, "data"),
    ],
    ids=["rate", "patch sizes", "network", "data"],
)
def test_the_state_of_a_run_with_other_settings_is_refused(changes, named, data, recipe, tmp_path):
    trainer(data, tmp_path, epochs=1).run()
    with pytest.raises(InputError, match=named) as caught:
        trainer(data, tmp_path, **{"epochs": 1} | changes).resume()
    assert "\n" not in str(caught.value) and "--resume" in str(caught.value)


def test_a_damaged_state_is_refused(data, recipe, tmp_path, capsys):
    for content in (b"", b"no state"):
        (tmp_path / "digits-tiny.state.pt").write_bytes(content)
        assert main(["train", "digits-tiny", "--data", str(data), "--out", str(tmp_path), "--resume"]) == 2
        assert "is damaged: train without --resume" in capsys.readouterr().err


def test_a_convolutional_teacher_is_trained_first_and_used_again(data, recipe, tmp_path, monkeypatch):
    taught = replace(recipe, teacher="convnet", teacher_weight=0.5, epochs=1)
    monkeypatch.setitem(recipes.RECIPES, "digits-tiny", taught)
    teacher = replace(recipe, patch_size_weights={28: 1.0}, patch_drop_rates={}, epochs=1, optimiser="adamw")
    monkeypatch.setitem(recipes.RECIPES, "convnet", teacher)
    trained = []
    epoch = Trainer.train_epoch
    monkeypatch.setattr(Trainer, "train_epoch", lambda self: (trained.append(self), epoch(self))[1])
    for _ in range(2):
        train_preset(PRESETS["digits-tiny"], data, tmp_path / "runs", device=CPU, seed=2)
    first, *students = trained
    assert isinstance(first.trained_network, ConvNet) and len(students) == 2
    assert all(isinstance(one.teacher, ConvNet) and isinstance(one.trained_network, ViT) for one in students)


def test_a_pretrained_teacher_sees_large_photos_and_only_the_vit_is_exported(scenes, tmp_path, monkeypatch):
    config = replace(TINY, image_size=12, patch_size=6, in_channels=3, num_classes=4)
    preset = replace(
        PRESETS["photos-tiny"], config=config, patch_sizes=(3, 6), default_patch_size=3, labels=tuple("abcd")
    )
    small = Recipe(
        patch_size_weights={3: 0.5, 6: 0.5}, epochs=1, batch_size=16, mix_probability=1.0, photo_outliers=4,
        teacher="vit", teacher_weight=0.9, teacher_image_size=24, patch_drop_rates={3: 0.5},
    )  # fmt: skip
    monkeypatch.setitem(recipes.RECIPES, "photos-tiny", small)
    teacher, shapes = ViT(replace(config, image_size=24, num_classes=7)), set()
    teacher.register_forward_pre_hook(lambda module, args: shapes.add(tuple(args[0].shape)))
    monkeypatch.setattr(run, "load_pretrained_vit", lambda folder: teacher)
    (path,) = train_preset(preset, scenes, tmp_path, device=CPU)
    exported, record = load_checkpoint(path)
    assert shapes == {(16, 3, 24, 24)} and exported.head.out_features == 4
    assert set(record["test_accuracy"]) == {"3", "6"}


def test_a_run_starts_from_earlier_weights_and_records_theirs(data, recipe, tmp_path, monkeypatch, capsys):
    command = ["train", "digits-tiny", "--data", str(data), "--epochs", "1"]
    assert main([*command, "--out", str(tmp_path / "first")]) == 0
    still = replace(recipe, learning_rate=0.0, weight_decay=0.0)  # nothing is learned, so the start is what comes out
    monkeypatch.setitem(recipes.RECIPES, "digits-tiny", still)
    assert main([*command, "--seed", "5", "--out", str(tmp_path / "second"), "--start", str(tmp_path / "first")]) == 0
    (first, record), (second, later) = (
        load_checkpoint(tmp_path / f"{n}/digits-tiny.safetensors") for n in ("first", "second")
    )
    assert all(torch.equal(a, b) for a, b in zip(first.blocks.parameters(), second.blocks.parameters(), strict=True))
    assert later["start"] == record and later["command"].endswith("--start DIR") and "start" not in record
    assert main([*command, "--out", str(tmp_path / "third"), "--start", str(tmp_path / "nothing")]) == 2
    assert "digits-tiny.safetensors are missing" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--epochs", "0"], ["--epochs", "-3"]])
def test_epochs_out_of_range_are_refused(wrong, data, recipe, tmp_path, capsys):
    assert main(["train", "digits-tiny", "--data", str(data), "--out", str(tmp_path / "runs"), *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "runs").exists()


def test_a_dataset_smaller_than_a_batch_is_refused(data, recipe, tmp_path):
    few = ImageDataset(torch.zeros(31, 1, 28, 28, dtype=torch.uint8), torch.zeros(31).long(), ())
    with pytest.raises(InputError, match="31 training images"):
        trainer(data, tmp_path, digits=few)


def test_every_patch_size_is_trained_and_patches_are_dropped_until_the_last_fifth_of_the_run(data, recipe, tmp_path):
    run, seen = trainer(data, tmp_path, epochs=5), set()
    run.model.network.blocks[1].register_forward_pre_hook(lambda block, args: seen.add((run.epoch, args[0].shape[1])))
    run.run()
    assert seen == {(e, 1 + 12) for e in range(4)} | {(4, 1 + 16)} | {(e, 1 + 4) for e in range(5)}


def test_muon_moves_the_matrices_of_the_blocks_and_vectors_are_not_decayed(data, recipe, tmp_path):
    run = trainer(data, tmp_path)
    names = {id(p): name for name, p in run.model.named_parameters()}
    groups = run.optimiser.param_groups
    assert sorted(names) == sorted(id(p) for group in groups for p in group["params"])
    decayed = {names[id(p)] for group in groups if group["weight_decay"] for p in group["params"]}
    assert decayed == {name for name, p in run.model.named_parameters() if p.ndim > 1}
    by_muon = {names[id(p)] for group in groups if not group.get("use_fallback") for p in group["params"] if p.ndim > 1}
    assert by_muon == {name for name in decayed if ".blocks." in name} and len(by_muon) == 4 * TINY.depth


def test_the_learning_rate_rises_over_a_twentieth_of_the_steps_and_falls_to_zero_or_stays(data, recipe, tmp_path):
    run, rates = trainer(data, tmp_path / "a", epochs=4), []
    step = run.loss
    run.loss = lambda *arguments: (rates.append(run.optimiser.param_groups[0]["lr"]), step(*arguments))[1]
    run.run()
    assert len(rates) == 40 and rates[0] == pytest.approx(2e-3) and rates[1] == pytest.approx(4e-3, rel=0.01)
    assert rates[1:] == sorted(rates[1:], reverse=True) and rates[-1] < 1e-4
    plain = trainer(data, tmp_path / "b", epochs=1, optimiser="adam", constant_rate=True)
    plain.run()
    assert {group["lr"] for group in plain.optimiser.param_groups} == {4e-3}


def test_training_on_the_cpu_writes_attention_out(data, recipe, tmp_path):
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.head = nn.Linear(28, 12), nn.Linear(4, 10)
            self.kinds = set()

        def forward(self, images, *, patch_size):
            out = F.scaled_dot_product_attention(*self.qkv(images).split(4, dim=-1))
            self.kinds.add(type(out.grad_fn).__name__ if out.grad_fn else "no gradient")
            return self.head(out.mean((1, 2)))

    run = trainer(data, tmp_path, network=Attends(), epochs=1)
    run.run(load_digits(data, "test"))
    assert run.model.network.kinds == {"UnsafeViewBackward0"}, "a matrix product"


def test_each_epoch_has_another_order_and_every_image_once(data, recipe, tmp_path):
    run, seen = trainer(data, tmp_path, epochs=2), []
    step = run.loss
    run.loss = lambda *arguments: (seen.append(run.keys[len(seen) % 10][1]), step(*arguments))[1]
    run.run()
    first, second = torch.cat(seen[:10]), torch.cat(seen[10:])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(320))
    assert not torch.equal(first, second)


def test_predictions_are_those_of_a_plain_loop(data, recipe, tmp_path):
    model, test = ViT(TINY), load_digits(data, "test")
    found = predict(model, test, PRESETS["digits-tiny"], 7, batch_size=7)
    right, loss = 0, 0.0
    with torch.no_grad():
        for image, label in zip(test.images, test.labels, strict=True):
            logits = model((image[None].float() / 255 - 0.1307) / 0.3081, patch_size=7)[0]
            right += int(logits.argmax() == label)
            loss -= float(logits.log_softmax(0)[label])
    assert found.accuracy == pytest.approx(right / 40)
    assert found.loss().item() == pytest.approx(loss / 40, rel=1e-4)


def test_the_splits_share_no_digit(data):
    train, validation, test = (load_digits(data, part) for part in ("train", "validation", "test"))
    assert (len(train), len(validation), len(test)) == (320, 200, 40)
    seen = {image.numpy().tobytes() for image in train.images}
    assert not seen & {image.numpy().tobytes() for image in validation.images}


def test_further_digits_are_preprocessed_as_on_the_page(data, recipe, tmp_path):
    drawings = [np.asarray(example_picture(digit)) for digit in (1, 4, 7)]
    np.savez(data / "digits_other.npz", own_images=np.stack(drawings), own_labels=np.array([1, 4, 7], np.uint8))
    own = load_other_digits(data)["own"]
    assert np.array_equal(own.images[1, 0].numpy(), to_mnist(drawings[1]))
    assert set(labelled_sets(PRESETS["digits-tiny"], data)) == {"mnist", "own"}


def test_missing_photos_are_one_line_on_stderr_and_exit_code_2(tmp_path, capsys):
    assert main(["evaluate", "photos-tiny", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0 and "tiny_imagenet40.npz" in error
