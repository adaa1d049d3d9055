import json

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.render import ComparisonRow, comparison_sheet, heat_colours

from ..percentages import percentage


def test_the_table_has_a_line_for_each_model_and_patch_size(seven, tmp_path, capsys):
    command = ["compare", str(seven), "--preset", "digits-small,digits-tiny", "--patch-size", "4,7"]
    assert main([*command, "--method", "rollout,relevance", "--out", str(tmp_path)]) == 0
    heading, *lines, path = capsys.readouterr().out.splitlines()
    assert heading.split() == ["preset", "patch", "grid", "prediction", "rollout", "relevance"]
    assert [line.split()[:2] for line in lines] == [
        [name, size] for name in ("digits-small", "digits-tiny") for size in ("4", "7")
    ]
    for line in lines:
        expected = vit_demo.explore(seven, line.split()[0], patch_size=int(line.split()[1]))
        label, probability = expected.top(1)[0]
        assert f"{label} {percentage(probability)}" in line
        for values in (expected.rollout(), expected.relevance()):
            place = np.unravel_index(values.argmax(), values.shape)
            assert f"{values.max() / values.mean():.1f} x mean at ({place[0]}, {place[1]})" in line
    sheet = Image.open(path)
    assert path == str(tmp_path / "seven-compare.png") and sheet.width > 3 * 150 and sheet.height > 4 * 150


@pytest.mark.parametrize(
    ("presets", "sizes"),
    [
        ("digits-tiny", [("digits-tiny", p) for p in (2, 4, 7, 14)]),
        ("digits-tiny,digits-notebook", [("digits-tiny", 4), ("digits-notebook", 4)]),
    ],
)
def test_patch_sizes_by_default(seven, tmp_path, capsys, presets, sizes):
    assert main(["compare", str(seven), "--preset", presets, "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["preset"], one["patch_size"]) for one in found] == sizes
    values = np.float32(found[-1]["maps"]["libra_fullgrad"]["values"])
    name, size = sizes[-1]
    expected = vit_demo.explore(seven, name, patch_size=size).heatmap("libra_fullgrad")
    assert np.array_equal(values, expected)


def test_all_maps_of_a_sheet_share_one_scale():
    black = Image.new("L", (28, 28))
    maps = [np.full((2, 2), value, np.float32) for value in (4.0, 0.25, 0.0)]
    rows = [ComparisonRow(["first"], black, maps[:1], [""]), ComparisonRow(["second"], black, maps[1:2], [""])]
    sheet = np.asarray(comparison_sheet(["Map"], rows, "units"), float)
    for share in (1.0, 0.25):  # square roots of 1 and 1/16
        *colour, opacity = heat_colours(np.array(share), 0.8)
        expected = 252 + opacity * (np.array(colour) - 252)
        assert (np.abs(sheet - expected).max(-1) <= 1.5).sum() > 100 * 100, share
    flat = comparison_sheet(["Map"], [ComparisonRow(["zero"], black, maps[2:], [""])], "units")
    assert np.asarray(flat).shape[2] == 3, "a map without anything above 0 has no scale"
