import json

import pytest
import torch
from PIL import Image

from vit_demo.cli import main
from vit_demo.training import evaluate
from vit_demo.training.data import load_digits
from vit_demo.training.loop import Trainer
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import save_checkpoint


@pytest.fixture
def weights(data, recipe, tmp_path):
    """A folder with an untrained network: what it says does not matter here."""
    preset = PRESETS["digits-tiny"]
    trainer = Trainer(preset, "digits-tiny", load_digits(data, "train"), tmp_path, device=torch.device("cpu"))
    save_checkpoint(tmp_path / "digits-tiny.safetensors", trainer.model, {})
    return tmp_path


def test_evaluate_says_accuracy_confusion_calibration_and_doubt(data, weights, capsys):
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(weights)]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    for patch_size in ("7", "14"):
        assert 0 <= report["calibration_error"]["mnist"][patch_size] <= 1
        assert set(report["not_sure"]) == {"letters", "signs", "scribbles", "two digits"}
    table = torch.tensor(report["confusion"]["mnist"])
    assert table.sum(1).tolist() == [4] * 10, "40 test digits, four of each"
    shown = str(report["confusion"]["patch_size"])
    assert report["accuracy"]["mnist"][shown] == pytest.approx(table.diag().sum().item() / 40)
    assert main(command) == 0
    printed = capsys.readouterr().out
    for words in ("right answers", "calibration error", "not sure of", "mistakes on mnist", "two digits"):
        assert words in printed
    assert len(printed.split("truth  answer")[1].strip().splitlines()) == 11


def test_plot_draws_confusion_and_calibration(data, weights, tmp_path, capsys):
    command = ["evaluate", "digits-tiny", "--data", str(data), "--weights", str(weights), "--patch-size", "14"]
    assert main([*command, "--plot", str(tmp_path / "plots")]) == 0
    picture = Image.open(tmp_path / "plots" / "digits-tiny-mnist-14.png")
    assert picture.width > 900 and len(picture.convert("RGB").getcolors(1 << 20)) > 10


def test_doubt_is_what_the_page_would_say(data, weights, monkeypatch):
    preset, options = PRESETS["digits-tiny"], (weights, (14,), torch.device("cpu"))
    object.__setattr__(preset, "confidence_threshold", 0.0)
    assert all(shares[14] == 0 for shares in evaluate.doubts(preset, *options).values())
    object.__setattr__(preset, "confidence_threshold", 1.01)
    assert all(shares[14] == 1 for shares in evaluate.doubts(preset, *options).values())
