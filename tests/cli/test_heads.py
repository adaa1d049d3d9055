"""What heads are worth, as a table, a picture and JSON; explain without some of them."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.render import heads_sheet


@pytest.mark.parametrize("against", [None, "1"])
def test_the_table_says_what_each_head_is_worth(seven, tmp_path, capsys, against):
    command = ["heads", str(seven), "--preset", "digits-tiny", "--label", "7", "--out", str(tmp_path)]
    assert main([*command, *(["--against", against] if against else [])]) == 0
    lines = capsys.readouterr().out.splitlines()
    ex = vit_demo.explore(seven, "digits-tiny")
    effects, parts = ex.head_effects("7", against), ex.contributions("7", against)
    assert lines[0].startswith(f"It says {ex.top(1)[0][0]}, ") and lines[0].endswith(" %.")
    blocks = [line for line in lines if line.startswith("block ")]
    depth = len(effects)
    for values, rows, mlps in ((effects, blocks[:depth], None), (parts.heads, blocks[depth:], parts.mlps)):
        for block, row in enumerate(rows):
            number, *cells = row.replace("*", " ").split()[1:]
            expected = [*values[block], *([] if mlps is None else [mlps[block]])]
            assert int(number) == block and [float(cell) for cell in cells] == pytest.approx(expected, abs=0.006)
        marked = [(block, row) for block, row in enumerate(rows) if "*" in row]
        assert [block for block, _ in marked] == [np.unravel_index(values.argmax(), values.shape)[0]]
    assert len(blocks) == 2 * depth and lines[-2].endswith(f"{parts.logit:.2f}.")
    assert lines[-1] == str(tmp_path / "seven-head-effects.png") and Image.open(lines[-1]).width > 300


def test_json_has_the_numbers_of_the_package(seven, tmp_path, capsys):
    command = ["heads", str(seven), "--preset", "digits-tiny", "--json", "--without-heads", "1.0,0.2"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    ex = vit_demo.explore(seven, "digits-tiny").without(heads=[(1, 0), (0, 2)])
    np.testing.assert_allclose(found["effects"], ex.head_effects(), atol=1e-5)
    np.testing.assert_allclose(found["contributions"], ex.contributions().heads, atol=1e-5)
    total = np.sum(found["contributions"]) + sum(found["mlps"]) + found["tokens"] + found["bias"]
    assert total == pytest.approx(found["logit"], abs=1e-4) == pytest.approx(ex.logits.max(), abs=1e-3)
    assert found["label"] == ex.top(1)[0][0] and found["against"] is None
    assert main([*command[:4], *command[5:], "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(" without heads 0.2, 1.0.")


def test_explain_without_heads(seven, tmp_path, capsys):
    command = ["explain", str(seven), "--preset", "digits-tiny", "--method", "rollout", "--out", str(tmp_path)]
    assert main([*command, "--without-heads", "1.0,2.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    ex = vit_demo.explore(seven, "digits-tiny").without(heads=[(1, 0), (2, 1)])
    assert found["without_heads"] == [[1, 0], [2, 1]] and found["predictions"][0]["label"] == ex.top(1)[0][0]
    np.testing.assert_allclose(found["maps"]["rollout"]["values"], ex.rollout(), atol=1e-6)
    assert main([*command, "--without-heads", "1.0"]) == 0
    heads = ex.trace.num_blocks * ex.trace.num_heads
    assert f", without 1 of its {heads} heads" in capsys.readouterr().out


def test_a_report_names_what_is_silent(seven, tmp_path, capsys):
    page = tmp_path / "report.html"
    command = ["explain", str(seven), "--preset", "digits-tiny", "--method", "rollout", "--html", str(page)]
    for heads, words in (([], None), (["--without-heads", "2.1,1.0"], "Silent: heads 1.0, 2.1, counted from 0.")):
        assert main([*command, *heads]) == 0
        assert ("Silent" in page.read_text()) == bool(words) and (words or "") in page.read_text()
    capsys.readouterr()
    ex = vit_demo.explore(seven, "digits-tiny").without(heads=[(1, 0)], blocks=[0], mlps=[1, 2])
    vit_demo.report([ex], page, ["rollout"])
    assert "Silent: heads 1.0; blocks 0; MLPs 1, 2, counted from 0." in page.read_text()


TOO_MANY = ",".join(f"{i}.0" for i in range(10_000))
BAD = {
    "a head that is not there": ("0.99", "no head 99"),
    "a block that is not there": ("99.0", "no block 99"),
    "ten thousand": (TOO_MANY, "at most 1000"),
    "a double": ("1.0,2.1,1.0", "named twice"),
    "another spelling": ("1.0,01.0", "block.head"),
    "a head from the end": ("1.-1", "block.head"),
    "a lonely block": ("1", "block.head"),
    "none": ("", "block.head"),
}


@pytest.mark.parametrize(("heads", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", ["heads", "explain"])
def test_bad_heads_get_one_sentence(seven, tmp_path, capsys, command, heads, message):
    arguments = [command, str(seven), "--preset", "digits-tiny", "--out", str(tmp_path), "--without-heads", heads]
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err.strip()
    assert code and message in said and len(said.splitlines()) == 1 and len(said) < 250


def test_a_network_that_is_no_sum_has_effects_alone(seven, tmp_path, capsys, monkeypatch):
    from vit_demo.errors import InputError
    from vit_demo.inference.exploration import Exploration

    def refuse(*_):
        raise InputError("The head is more than linear.")

    monkeypatch.setattr(Exploration, "contributions", refuse)
    assert main(["heads", str(seven), "--preset", "digits-tiny", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("more than linear") == 1 and "MLP" not in shown.out and "block 0" in shown.out


def test_the_picture_shows_which_head_is_worth_most():
    values = np.zeros((2, 3), np.float32)
    values[1, 2], values[0, 0] = 2.0, -2.0
    sheet = torch.from_numpy(np.asarray(heads_sheet({"effects": values}, "logit")).astype(int))
    red, blue = (sheet[..., 0] - sheet[..., 2]) > 80, (sheet[..., 2] - sheet[..., 0]) > 80
    centre_of = [mask.nonzero().float().median(0).values for mask in (red, blue)]
    assert centre_of[0][1] > centre_of[1][1], "the last head is on the right"
