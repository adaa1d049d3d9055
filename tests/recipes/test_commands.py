"""``python -m recipes``, and ``python -m vit_demo evaluate --data``, which asks it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torchvision

from recipes.__main__ import main
from vit_demo import cli


def test_data_that_are_not_there_leave_nothing_behind(tmp_path, monkeypatch, capsys):
    def download(folder: Path, **options: object) -> None:
        (folder / "MNIST" / "raw").mkdir(parents=True)
        raise RuntimeError("Error downloading train-images:\nTried https://one.example\nTried https://two.example")

    monkeypatch.setattr(torchvision.datasets, "MNIST", download)
    for folder in (tmp_path / "nothing", tmp_path):
        assert main(["evaluate", "digits-tiny", "--data", str(folder)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "--data" in error and str(folder) in error
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "damaged"), (b"PK\x03\x04", "damaged"), (None, "holds other arrays than expected")]
)
def test_data_that_are_damaged_or_of_another_kind_get_a_sentence(content, words, tmp_path, capsys):
    if content is None:
        np.savez(tmp_path / "mnist.npz", x_train=np.zeros(3))
    else:
        (tmp_path / "mnist.npz").write_bytes(content)
    assert main(["evaluate", "digits-tiny", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "digits-tiny", "--out", "FILE"], "cannot be made"),
        (["evaluate", "digits-tiny", "--plot", "FILE"], "cannot be made"),
        (["train", "digits-tiny", "--seed", "-1"], "The seed must be from 0"),
        (["train", "digits-tiny", "--seed", "9" * 20], "The seed must be from 0"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_work(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("FILE").touch()
    assert main([*arguments, "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and words in error


@pytest.mark.parametrize("command", ["train", "evaluate"])
@pytest.mark.parametrize("name", ["vit-ti16", "someone/cats"])
def test_only_bundled_presets_are_trained_and_evaluated(command, name, tmp_path, capsys):
    assert main([command, name, "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("recipes: Only bundled presets") and error.count("\n") == 1


def test_the_command_of_the_package_prints_the_same_report(data, capsys):
    """With the bundled weights."""
    arguments = ["evaluate", "digits-notebook", "--data", str(data), "--patch-size", "14", "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert cli.main(arguments) == 0
    assert json.loads(capsys.readouterr().out) == report and set(report["accuracy"]["mnist"]) == {"14"}
    assert cli.main(["evaluate", "vit-ti16", "--data", str(data)]) == 2
    assert capsys.readouterr().err.startswith("vit_demo: Only bundled presets")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_without_a_clone_the_package_says_where_test_data_are_read(elsewhere, data, tmp_path, monkeypatch, capsys):
    """``elsewhere``: a folder of that name that is not ours."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "recipes"]:
        monkeypatch.delitem(sys.modules, name)
    if elsewhere:
        (tmp_path / "recipes").mkdir()
        (tmp_path / "recipes" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(p for p in sys.path if not (Path(p) / "recipes").is_dir())])
    monkeypatch.chdir(tmp_path)
    assert cli.main(["evaluate", "digits-tiny", "--data", str(data)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "in a clone" in error
