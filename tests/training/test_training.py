import csv
import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.cli import main
from vit_demo.images import to_mnist
from vit_demo.training import recipes
from vit_demo.training.data import load_digits, load_other_digits
from vit_demo.training.evaluate import evaluate_preset
from vit_demo.training.loop import Trainer
from vit_demo.training.predictions import predict
from vit_demo.training.run import train_preset
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint, save_checkpoint

CPU = torch.device("cpu")


def trainer(data, out, **options):
    return Trainer(PRESETS["digits-tiny"], "digits-tiny", load_digits(data, "train"), out, device=CPU, **options)


def test_training_learns_and_evaluate_finds_the_accuracy_that_the_checkpoint_records(data, recipe, tmp_path, capsys):
    out = tmp_path / "runs"
    assert main(["train", "digits-tiny", "--data", str(data), "--out", str(out), "--seed", "1", "--epochs", "16"]) == 0
    rows = list(csv.DictReader((out / "digits-tiny.csv").open()))
    assert [row["epoch"] for row in rows] == [str(i + 1) for i in range(16)]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    _, record = load_checkpoint(out / "digits-tiny.safetensors")
    assert record["seed"] == 1 and record["epochs"] == 16 and "--seed 1 --epochs 16" in record["command"]
    assert record["test_accuracy"]["7"] > 0.5, "ten patterns that are easy to tell apart"
    found = evaluate_preset(PRESETS["digits-tiny"], data, out, (7, 14), CPU)
    assert found["mnist"][7].accuracy == pytest.approx(record["test_accuracy"]["7"], abs=0.03)  # half precision
    capsys.readouterr()
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(out), "--json"]
    assert main(command) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["accuracy"]["mnist"] == {str(p): found["mnist"][p].accuracy for p in (7, 14)}


def same_weights(a, b):
    return all(torch.equal(tensor, b.state_dict()[name]) for name, tensor in a.state_dict().items())


@pytest.mark.parametrize(
    ("after", "optimiser"),
    [(1, "adamw"), (13, "adamw"), (13, "muon"), (20, "adamw")],
    ids=["first step", "mid-epoch", "mid-epoch, Muon", "last step of an epoch"],
)
def test_an_interrupted_and_resumed_run_gives_bit_identical_weights(
    after, optimiser, data, recipe, tmp_path, monkeypatch
):
    monkeypatch.setitem(recipes.RECIPES, "digits-tiny", replace(recipe, optimiser=optimiser))
    whole = trainer(data, tmp_path / "whole")
    whole.run()
    assert whole.loader.steps_per_epoch == 10
    first, steps = trainer(data, tmp_path / "parts"), 0
    step = first.train_step

    def press_ctrl_c_in_time(*arguments):
        nonlocal steps
        steps += 1
        if steps == after:
            os.kill(os.getpid(), signal.SIGINT)
        return step(*arguments)

    first.train_step = press_ctrl_c_in_time
    with pytest.raises(KeyboardInterrupt):
        first.run()
    torch.manual_seed(99)  # as in another process
    second = trainer(data, tmp_path / "parts")
    assert second.resume() and 10 * second.epoch + second.step == after
    second.run()
    assert same_weights(whole.trained_network, second.trained_network)
    rows = list(csv.DictReader((tmp_path / "parts" / "digits-tiny.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    losses = [row["loss"] for row in csv.DictReader((tmp_path / "whole" / "digits-tiny.csv").open())]
    assert [row["loss"] for row in rows] == losses


def test_ctrl_c_on_the_command_line_saves_and_resume_continues(data, recipe, tmp_path, monkeypatch, capsys):
    step = Trainer.train_step

    def press_ctrl_c(self, *arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return step(self, *arguments)

    command = ["train", "digits-tiny", "--data", str(data), "--out", str(tmp_path / "runs")]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", press_ctrl_c)
        assert main(command) == 130
    assert "--resume" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "digits-tiny.safetensors").exists()
    assert main([*command, "--resume", "--seed", "5"]) == 2
    assert "seed 0" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    whole = trainer(data, tmp_path / "whole")
    whole.run()
    shipped, _ = load_checkpoint(tmp_path / "runs" / "digits-tiny.safetensors")
    assert torch.equal(shipped.cls_token, whole.trained_network.cls_token.half().float())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"learning_rate": 3e-3}, "learning rate 0.004, not 0.003"),
        ({"recipe": {"weight_decay": 0.2}}, "weight_decay"),
        ({"network": {"norm_eps": 1e-5}}, "norm_eps"),
        ({"data": True}, "other data"),
    ],
    ids=["rate", "recipe", "network", "data"],
)
def test_the_state_of_a_run_with_other_settings_is_refused(change, named, data, recipe, tmp_path, monkeypatch):
    first = trainer(data, tmp_path, epochs=1)
    first.run()
    options = {key: value for key, value in change.items() if key == "learning_rate"}
    monkeypatch.setitem(recipes.RECIPES, "digits-tiny", replace(recipe, **change.get("recipe", {})))
    config = replace(PRESETS["digits-tiny"].config, **change.get("network", {}))
    preset = replace(PRESETS["digits-tiny"], config=config)
    digits = load_digits(data, "train")
    digits = replace(digits, images=digits.images.flip(0)) if "data" in change else digits
    second = Trainer(preset, "digits-tiny", digits, tmp_path, device=CPU, epochs=1, **options)
    with pytest.raises(ValueError, match=named) as caught:
        second.resume()
    assert "\n" not in str(caught.value) and "--resume" in str(caught.value)


def test_a_damaged_state_is_refused(data, recipe, tmp_path, capsys):
    for content in (b"", b"no state"):
        (tmp_path / "digits-tiny.state.pt").write_bytes(content)
        assert main(["train", "digits-tiny", "--data", str(data), "--out", str(tmp_path), "--resume"]) == 2
        assert "is damaged: train without --resume" in capsys.readouterr().err


def test_a_teacher_is_reused_for_the_same_data_only(data, recipe, tmp_path, monkeypatch):
    monkeypatch.setitem(
        recipes.RECIPES,
        "digits-tiny",
        replace(recipe, teacher_recipe="digits-teacher", distillation_weight=0.5, epochs=1),
    )
    teacher = replace(recipe, patch_size_weights={28: 1.0}, patch_keep_rates={}, epochs=1, learning_rate=1e-3)
    monkeypatch.setitem(recipes.RECIPES, "digits-teacher", teacher)
    done = []
    run = Trainer.run

    def note(self, watched):
        if self.name == "digits-teacher":
            done.append(self.epoch)
        run(self, watched)

    monkeypatch.setattr(Trainer, "run", note)
    options = {"device": CPU, "seed": 2}
    for _ in range(2):
        train_preset(PRESETS["digits-tiny"], data, tmp_path / "runs", **options)
    with np.load(data / "mnist.npz") as file:
        arrays = dict(file)
    np.savez(data / "mnist.npz", **arrays | {"train_images": arrays["train_images"][:, ::-1]})
    train_preset(PRESETS["digits-tiny"], data, tmp_path / "runs", **options)
    assert done == [0, 1, 0], "trained, reused, and trained anew"


@pytest.mark.parametrize("wrong", [["--epochs", "0"], ["--epochs", "-3"], ["--learning-rate", "0"]])
def test_epochs_and_learning_rates_out_of_range_are_refused(wrong, data, recipe, tmp_path, capsys):
    assert main(["train", "digits-tiny", "--data", str(data), "--out", str(tmp_path / "runs"), *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "runs").exists()


def test_the_log_is_plotted(data, recipe, tmp_path, plots):
    trainer(data, tmp_path, epochs=2).run(load_digits(data, "test"))
    picture = Image.open(tmp_path / "digits-tiny.png")
    assert picture.size[0] > 600 and len(picture.convert("RGB").getcolors(1 << 20)) > 10


def test_patches_are_dropped_until_the_last_fifth_of_the_run(data, recipe, tmp_path):
    run, seen = trainer(data, tmp_path, epochs=5), []
    run.model.register_forward_hook(lambda m, args, kwargs, out: seen.append((run.epoch, kwargs)), with_kwargs=True)
    run.run()
    kept = {
        (epoch, kwargs["patch_size"], kwargs["kept_patches"].shape[1] if "kept_patches" in kwargs else 0)
        for epoch, kwargs in seen
    }
    assert kept == {(e, 7, 12) for e in range(4)} | {(4, 7, 0)} | {(e, 14, 0) for e in range(5)}
    for _, kwargs in seen:
        if "kept_patches" in kwargs:
            assert all(len(set(row)) == 12 for row in kwargs["kept_patches"].tolist())
            assert len({tuple(row) for row in kwargs["kept_patches"].tolist()}) > 1, "each image keeps other patches"


def test_the_seed_determines_the_weights(data, recipe, tmp_path):
    def weights(name, seed):
        run = trainer(data, tmp_path / name, seed=seed, epochs=1)
        run.run()
        return torch.cat([p.flatten() for p in run.trained_network.parameters()])

    assert torch.equal(weights("a", 0), weights("b", 0))
    assert not torch.equal(weights("a", 0), weights("c", 1))


def test_every_patch_size_is_trained(data, recipe, tmp_path):
    run = trainer(data, tmp_path, epochs=1)
    seen = []
    run.model.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs["patch_size"]), with_kwargs=True)
    run.run()
    assert set(seen) == {7, 14}


def test_predictions_are_those_of_a_plain_loop(data, recipe, tmp_path):
    run = trainer(data, tmp_path)
    test = load_digits(data, "test")
    found = predict(run.model, test, PRESETS["digits-tiny"], 7, batch_size=7)
    right, loss = 0, 0.0
    with torch.no_grad():
        for image, label in zip(test.images, test.labels, strict=True):
            logits = run.model.eval()((image[None].float() / 255 - 0.1307) / 0.3081, patch_size=7)[0]
            right += int(logits.argmax() == label)
            loss -= float(logits.log_softmax(0)[label])
    assert found.accuracy == pytest.approx(right / 40)
    assert found.loss == pytest.approx(loss / 40, rel=1e-4)


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
    save_checkpoint(tmp_path / "digits-tiny.safetensors", trainer(data, tmp_path).model, {})
    found = evaluate_preset(PRESETS["digits-tiny"], data, tmp_path, (7,), CPU)
    assert set(found) == {"mnist", "own"} and found["own"][7].accuracy in (0, 1 / 3, 2 / 3, 1)


def test_missing_photos_are_one_line_on_stderr_and_exit_code_2(tmp_path, capsys):
    assert main(["evaluate", "photos-tiny", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0 and "tiny_imagenet40.npz" in error
