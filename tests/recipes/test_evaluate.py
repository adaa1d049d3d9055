import json
from dataclasses import replace

import pytest
import torch
from PIL import Image

from recipes.__main__ import main
from recipes.datasets import outlier_sets
from recipes.evaluate import FIGURES, evaluate, make_report
from recipes.predictions import Predictions
from vit_demo.errors import InputError
from vit_demo.model import ViT
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import save_checkpoint


@pytest.fixture
def weights(data, recipe, tmp_path):
    """A folder with an untrained network: its predictions do not matter here."""
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "digits-tiny.safetensors", ViT(PRESETS["digits-tiny"].config), {})
    return tmp_path


def test_evaluate_reports_accuracy_calibration_rejection_rates_and_confusion_matrix(data, weights, capsys):
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(weights)]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    for patch_size in ("7", "14"):
        assert 0 <= report["calibration_error"]["mnist"][patch_size] <= 1
        assert set(report["rejection_rate"]) == {"letters", "symbols", "scribbles", "two digits"}
    table = torch.tensor(report["confusion_matrix"]["mnist"])
    assert table.sum(1).tolist() == [4] * 10, "40 test digits, four of each"
    shown = str(report["confusion_matrix"]["patch_size"])
    assert report["accuracy"]["mnist"][shown] == pytest.approx(table.diag().sum().item() / 40)
    assert main(command) == 0
    printed = capsys.readouterr().out
    for words in (
        "accuracy",
        "calibration error",
        "rejection rate of outliers",
        "confusion matrix on mnist",
        "two digits",
    ):
        assert words in printed
    assert len(printed.split("label  prediction")[1].strip().splitlines()) == 11


def test_plot_draws_confusion_and_calibration(data, weights, tmp_path, capsys):
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(weights), "--patch-size", "14"]
    assert main([*command, "--plot", str(tmp_path / "plots")]) == 0
    picture = Image.open(tmp_path / "plots" / "digits-tiny-mnist-14.png")
    assert picture.width > 900 and len(picture.convert("RGB").getcolors(1 << 20)) > 10


def test_the_rejection_rate_is_that_of_the_preset_s_threshold(data, weights, capsys, monkeypatch):
    monkeypatch.setitem(PRESETS, "digits-tiny", replace(PRESETS["digits-tiny"], confidence_threshold=0.3))
    preset = PRESETS["digits-tiny"]
    outliers = evaluate(preset, outlier_sets(preset, data), weights, (14,), torch.device("cpu"))
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(weights), "--patch-size", "14"]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["rejection_rate"]
    for kind, found in outliers.items():
        expected = sum(max(row) < 0.3 for row in found[14].logits.softmax(1).tolist()) / len(found[14].labels)
        assert printed[kind]["14"] == pytest.approx(expected)


def test_rates_count_wrong_of_all_and_rejected_of_the_correct_predictions():
    sure, unsure = [5.0, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0]
    preset = replace(PRESETS["photos-tiny"], confidence_threshold=0.55, labels=tuple("abcd"))
    found = Predictions(torch.tensor([sure, sure, sure, unsure, unsure]), torch.tensor([0, 0, 1, 0, 1]))
    assert FIGURES["wrong_but_confident"](found, preset) == pytest.approx(1 / 5)
    assert FIGURES["correct_but_rejected"](found, preset) == pytest.approx(1 / 3)
    report = make_report(preset, {"photos": {3: found}}, {"other": {3: found}}, 3)
    assert report["rejection_rate"]["other"][3] == pytest.approx(2 / 5)
    none_correct = Predictions(torch.tensor([sure, unsure]), torch.tensor([1, 1]))
    assert FIGURES["correct_but_rejected"](none_correct, preset) == 0


@pytest.mark.parametrize(
    "wrong",
    [["--patch-size", "5"], ["--data", "nowhere"], ["--weights", "nowhere"]],
    ids=["patch size", "data", "checkpoints"],
)
def test_wrong_arguments_are_one_line_on_stderr_and_exit_code_2(wrong, data, weights, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("recipes.digits._download_mnist", _no_download)
    assert main(["evaluate", "digits-tiny", "--data", str(data), "--weights", str(weights), *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def _no_download(folder, **_):
    raise InputError(f"No mnist.npz in {folder}.")
