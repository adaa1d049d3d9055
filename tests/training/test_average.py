import numpy as np
import pytest
import torch

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT, ViTConfig
from vit_demo.training.average import average_checkpoints, main
from vit_demo.training.predictions import predict
from vit_demo.training.run import load_split
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_checkpoint, save_checkpoint

CONFIG = ViTConfig(image_size=28, patch_size=14, in_channels=1, num_classes=10, embed_dim=8, depth=1, num_heads=2)


def test_the_average_is_of_the_weights_before_calibration(tmp_path):
    torch.manual_seed(0)
    first, second = ViT(CONFIG), ViT(CONFIG)
    save_checkpoint(tmp_path / "a", first, {"temperature": 2.0, "seed": 1})
    save_checkpoint(tmp_path / "b", second, {"seed": 2})
    mean, records = average_checkpoints({tmp_path / "a": 1.0, tmp_path / "b": 3.0})
    a, b = first.half().float().state_dict(), second.half().float().state_dict()
    for name, tensor in mean.state_dict().items():
        warm = 2.0 if name.startswith("head.") else 1.0
        assert torch.allclose(tensor, 0.25 * warm * a[name] + 0.75 * b[name], atol=1e-6)
    assert [record["seed"] for record in records] == [1, 2]
    save_checkpoint(tmp_path / "c", ViT(ViTConfig(**CONFIG.to_dict() | {"embed_dim": 16})), {})
    with pytest.raises(CheckpointError, match="c holds another network"):
        average_checkpoints({tmp_path / "a": 1.0, tmp_path / "c": 1.0})


def test_the_command_writes_a_checkpoint_with_the_records_of_all(data, recipe, tmp_path):
    preset = PRESETS["digits-tiny"]
    for name in "ab":
        save_checkpoint(tmp_path / name, ViT(preset.config), {"seed": name, "data": "squares"})
    files, out = [str(tmp_path / name) for name in "ab"], tmp_path / "out.safetensors"
    assert main(["digits-tiny", *files, "--shares", "0.5", "0.5", "--data", str(data), "--out", str(out)]) == 0
    model, record = load_checkpoint(out)
    assert [made["seed"] for made in record["averaged"]] == ["a", "b"] and record["data"] == "squares"
    found = predict(model, load_split(preset, data, "test"), preset, 7).accuracy
    assert np.isclose(record["test_accuracy"]["7"], found)


@pytest.mark.parametrize("shares", [["1"], ["1", "0"], ["1", "-1"], ["1", "nan"], ["1", "inf"], ["1", "x"], []])
def test_wrong_shares_are_one_line_on_stderr_and_exit_code_2(shares, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["digits-tiny", "a", "b", "--data", str(tmp_path), "--out", str(tmp_path / "c"), "--shares", *shares])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_is_averaged_once_and_fits_the_preset(data, tmp_path, capsys):
    save_checkpoint(tmp_path / "a", ViT(CONFIG), {})
    more = ["--data", str(data), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        main(["digits-tiny", *[str(tmp_path / "a")] * 2, "--shares", "1", "2", *more])
    assert stop.value.code == 2 and "named twice" in capsys.readouterr().err
    assert main(["digits-tiny", str(tmp_path / "a"), "--shares", "1", *more]) == 2
    assert "does not fit the network of digits-tiny" in capsys.readouterr().err


def test_a_missing_checkpoint_or_missing_data_is_one_line_on_stderr_and_exit_code_2(tmp_path, capsys):
    save_checkpoint(tmp_path / "a", ViT(CONFIG), {})
    for name in ("missing.safetensors", "a"):
        command = ["photos-tiny", str(tmp_path / name), "--shares", "1", "--data", str(tmp_path / "none")]
        assert main([*command, "--out", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "out").exists()
