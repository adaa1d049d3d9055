"""``teach``: a network with the folders of a folder as its classes, for every other command."""

import json
import shutil
from pathlib import Path

import pytest

import vit_demo
from vit_demo.cli import main

from ..teaching.drawings import drawing


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three hearts and three stars, in the folders of their classes."""
    monkeypatch.chdir(tmp_path)
    for kind in ("heart", "star"):
        (folder := tmp_path / "shapes" / kind).mkdir(parents=True)
        for seed in range(3):
            drawing(kind, seed).save(folder / f"{seed}.png")
    drawing("star", 9).save("new.png")
    return tmp_path / "shapes"


def test_its_file_is_a_model_for_the_other_commands(shapes, capsys):
    assert main(["teach", str(shapes), "--model", "digits-tiny", "--patch-size", "7", "--out", "mine.safetensors"]) == 0
    examples = {kind: sorted((shapes / kind).iterdir()) for kind in ("heart", "star")}
    taught = vit_demo.teach(examples, "digits-tiny", patch_size=7)
    printed = capsys.readouterr().out
    assert f"{taught.confusion.trace()} of 6 pictures are right" in printed
    assert f"heart {'  '.join(map(str, taught.confusion[0]))}" in printed
    assert main(["explain", "new.png", "--model", "mine.safetensors", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = vit_demo.explore("new.png", taught).top(1)[0]
    assert found["predictions"][0]["label"] == expected[0] == "star"
    assert found["predictions"][0]["probability"] == pytest.approx(expected[1], abs=1e-5)
    assert main(["evaluate", "mine.safetensors", "--pictures", str(shapes), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures"] == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: shutil.rmtree(folder), "cannot be read"),
        (lambda folder: [shutil.rmtree(one) for one in folder.iterdir()], "holds no labelled pictures"),
        (lambda folder: shutil.rmtree(folder / "star"), "Teach 2 to 50 classes, not 1"),
        (lambda folder: [(folder / "star" / f"{i}.png").unlink() for i in range(2)], "has 1: give at least two"),
        (lambda folder: shutil.copy(folder / "star" / "0.png", folder / "star" / "3.png"), "are the same"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_sentence(shapes, capsys, change, words):
    change(shapes)
    assert main(["teach", str(shapes), "--model", "digits-tiny", "--out", "mine.safetensors"]) == 2
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error and not Path("mine.safetensors").exists()
