import csv
import json

import numpy as np
import pytest
import torch

from vit_demo.cli import main
from vit_demo.images import to_mnist
from vit_demo.train.data import load_digits, load_other_digits
from vit_demo.train.loop import Trainer, score
from vit_demo.train.run import evaluate_preset
from vit_demo.ui.pad import example_picture
from vit_demo.zoo import PRESETS
from vit_demo.zoo.checkpoints import load_checkpoint, save_checkpoint

CPU = torch.device("cpu")


def trainer(data, out, **options):
    return Trainer(PRESETS["digits-tiny"], "digits-tiny", load_digits(data, "train"), out, device=CPU, **options)


def test_training_learns_logs_and_ships_what_evaluate_then_finds(data, recipe, tmp_path, capsys):
    out = tmp_path / "runs"
    assert main(["train", "digits-tiny", "--data", str(data), "--out", str(out), "--seed", "1", "--epochs", "16"]) == 0
    rows = list(csv.DictReader((out / "digits-tiny.csv").open()))
    assert [row["epoch"] for row in rows] == [str(i + 1) for i in range(16)]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    _, record = load_checkpoint(out / "digits-tiny.safetensors")
    assert record["seed"] == 1 and record["epochs"] == 16 and "--seed 1 --epochs 16" in record["command"]
    assert record["test_accuracy"]["7"] > 0.5, "ten patterns a child could tell apart"
    found = evaluate_preset(PRESETS["digits-tiny"], data, out, (7, 14), CPU)
    assert found["mnist"][7] == pytest.approx(record["test_accuracy"]["7"], abs=0.03)  # half precision
    capsys.readouterr()
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(out), "--json"]
    assert main(command) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["accuracy"]["mnist"] == {"7": found["mnist"][7], "14": found["mnist"][14]}


def test_a_resumed_run_makes_the_weights_of_an_unbroken_one(data, recipe, tmp_path):
    whole = trainer(data, tmp_path / "whole")
    whole.run()
    first = trainer(data, tmp_path / "parts")
    first.epochs = 3
    save = first._save

    def stop_after_the_second(row):
        save(row)
        if first.epoch == 2:
            raise KeyboardInterrupt

    first._save = stop_after_the_second
    with pytest.raises(KeyboardInterrupt):
        first.run()
    second = trainer(data, tmp_path / "parts")
    assert second.resume() and second.epoch == 2
    second.run()
    for name, tensor in whole.shipped.state_dict().items():
        assert torch.equal(tensor, second.shipped.state_dict()[name]), name
    rows = list(csv.DictReader((tmp_path / "parts" / "digits-tiny.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]


def test_training_can_start_from_trained_weights_and_keeps_their_history(data, recipe, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    command = ["train", "digits-tiny", "--data", str(data)]
    assert main([*command, "--out", str(first), "--epochs", "1"]) == 0
    start = first / "digits-tiny.safetensors"
    finer = ["--out", str(second), "--epochs", "1", "--learning-rate", "1e-12", "--start", str(start)]
    assert main([*command, *finer]) == 0
    before, history = load_checkpoint(start)
    after, record = load_checkpoint(second / "digits-tiny.safetensors")
    assert record["started_from"] == history and "--start digits-tiny.safetensors" in record["command"]
    for name, tensor in before.state_dict().items():
        torch.testing.assert_close(after.state_dict()[name], tensor, atol=1e-3, rtol=1e-2)


def test_the_same_seed_gives_the_same_weights_and_another_one_others(data, recipe, tmp_path):
    def weights(name, seed):
        run = trainer(data, tmp_path / name, seed=seed, epochs=1)
        run.run()
        return torch.cat([p.flatten() for p in run.shipped.parameters()])

    assert torch.equal(weights("a", 0), weights("b", 0))
    assert not torch.equal(weights("a", 0), weights("c", 1))


def test_every_patch_size_is_trained(data, recipe, tmp_path):
    run = trainer(data, tmp_path, epochs=1)
    seen = []
    run.model.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs["patch_size"]), with_kwargs=True)
    run.run()
    assert set(seen) == {7, 14}


def test_score_counts_as_a_plain_loop_does(data, recipe, tmp_path):
    run = trainer(data, tmp_path)
    test = load_digits(data, "test")
    found = score(run.model, test, PRESETS["digits-tiny"], 7, batch_size=7)
    right, loss = 0, 0.0
    with torch.no_grad():
        for image, label in zip(test.images, test.labels, strict=True):
            logits = run.model.eval()((image[None].float() / 255 - 0.1307) / 0.3081, patch_size=7)[0]
            right += int(logits.argmax() == label)
            loss -= float(logits.log_softmax(0)[label])
    assert found.accuracy == right / 40
    assert found.loss == pytest.approx(loss / 40, rel=1e-4)


def test_training_and_validation_share_no_digit_and_leave_the_test_part_alone(data):
    train, validation, test = (load_digits(data, part) for part in ("train", "validation", "test"))
    assert (len(train), len(validation), len(test)) == (320, 5000, 40)
    seen = {image.numpy().tobytes() for image in train.images}
    assert not seen & {image.numpy().tobytes() for image in validation.images}


def test_other_peoples_digits_are_measured_as_the_page_would_see_them(data, recipe, tmp_path):
    drawings = [np.asarray(example_picture(digit)) for digit in (1, 4, 7)]
    np.savez(data / "digits_other.npz", own_images=np.stack(drawings), own_labels=np.array([1, 4, 7], np.uint8))
    own = load_other_digits(data)["own"]
    assert np.array_equal(own.images[1, 0].numpy(), to_mnist(drawings[1]))
    save_checkpoint(tmp_path / "digits-tiny.safetensors", trainer(data, tmp_path).model, {})
    found = evaluate_preset(PRESETS["digits-tiny"], data, tmp_path, (7,), CPU)
    assert set(found) == {"mnist", "own"} and found["own"][7] in (0, 1 / 3, 2 / 3, 1)


def test_missing_photos_are_one_sentence_and_exit_code_2(tmp_path, capsys):
    assert main(["evaluate", "photos-tiny", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0 and "tiny_imagenet40.npz" in error
