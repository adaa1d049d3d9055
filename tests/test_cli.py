import io

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main


@pytest.fixture
def seven(tmp_path):
    """A plain 7 in ink on paper."""
    picture = np.full((100, 100), 255, np.uint8)
    picture[20:28, 25:70] = 0
    for row in range(20, 85):
        picture[row, int(66 - 0.5 * (row - 20)) : int(75 - 0.5 * (row - 20))] = 0
    path = tmp_path / "seven.png"
    Image.fromarray(picture).save(path)
    return path


def test_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(vit_demo.presets())


@pytest.mark.parametrize("method", ["attention", "rollout", "relevance", "occlusion"])
def test_explain_prints_the_top_five_and_writes_the_pictures(seven, tmp_path, capsys, method):
    out = tmp_path / "out"
    command = ["explain", str(seven), "--preset", "digits-tiny", "--patch-size", "7", "--method", method]
    assert main([*command, "--out", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    expected = vit_demo.explore(seven, "digits-tiny", 7)
    assert [line.split()[0] for line in printed[:5]] == [label for label, _ in expected.top(5)]
    assert printed[0].split()[0] == "7"
    for name in ("input", method, "heads"):
        assert Image.open(out / f"seven-{name}.png").size[0] >= 28
    shown = np.asarray(Image.open(out / f"seven-{method}.png"))
    assert np.array_equal(shown, np.asarray(expected.overlay(expected.heatmap(method))))


def test_explain_draws_the_map_of_another_class(seven, tmp_path):
    command = ["explain", str(seven), "--preset", "digits-tiny", "--method", "relevance", "--label", "1"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    expected = vit_demo.explore(seven, "digits-tiny")
    shown = np.asarray(Image.open(tmp_path / "seven-relevance.png"))
    assert np.array_equal(shown, np.asarray(expected.overlay(expected.relevance("1"))))
    assert not np.array_equal(shown, np.asarray(expected.overlay(expected.relevance())))


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "nowhere.png"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--method", "relevance", "--label", "ten"],
        ["explain", "SEVEN", "--preset", "vit-9000"],
        ["explain", "SEVEN", "--method", "magic"],
        ["explain", "SEVEN", "--preset", "digits-tiny", "--patch-size", "5"],
        ["evaluate", "digits-tiny", "--data", "nowhere", "--patch-size", "3"],
        ["evaluate", "vit-9000", "--data", "nowhere"],
    ],
)
def test_invalid_input_is_one_line_on_stderr_and_exit_code_2(arguments, seven, capsys):
    assert main([str(seven) if a == "SEVEN" else a for a in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("vit_demo: ") and error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["explain"], ["fly"]])
def test_a_wrong_command_is_one_line_on_stderr_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_explain_reads_standard_input(seven, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(seven.read_bytes())))
    command = ["explain", "-", "--preset", "digits-tiny", "--patch-size", "7", "--out", str(tmp_path)]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("7 ") and (tmp_path / "image-rollout.png").is_file()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"no picture")))
    assert main(command) == 2


def test_a_bug_keeps_its_traceback(seven, monkeypatch):
    monkeypatch.setattr("vit_demo.render.contact_sheet", lambda *_: int("x"))
    with pytest.raises(ValueError, match="invalid literal"):
        main(["explain", str(seven), "--preset", "digits-tiny"])
