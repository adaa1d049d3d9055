"""What an audit says of each picture, beside a plain loop over the results of ``Explainer``."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

import vit_demo
from vit_demo.auditing.record import FILE
from vit_demo.errors import InputError

from .conftest import LABELS, to_input


def test_each_row_is_what_a_loop_finds(explainer, folder):
    mask = np.zeros((16, 16), np.uint8)
    mask[2:11, 5:15] = 255
    found = vit_demo.audit(explainer, folder, masks={"dog/01": mask}, batch_size=5)
    assert [row["file"] for row in found.table] == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*.png")
    )
    for row, values, top in zip(found.table, found.maps, found.tops, strict=True):
        ex = explainer(folder / row["file"])
        best = ex.top(3)
        expected = ex.heatmap("libra_fullgrad", row["truth"])
        assert (row["truth"], row["prediction"]) == (row["file"].split("/")[0], best[0][0])
        assert row["right"] == (row["truth"] == row["prediction"])
        assert row["probability"] == pytest.approx(best[0][1], abs=1e-5)
        assert row["margin"] == pytest.approx(best[0][1] - best[1][1], abs=1e-5)
        assert [label for label, _ in top] == [label for label, _ in best]
        assert np.allclose(values, expected, atol=2e-3 * abs(expected).max())
        total = border = inside = 0.0
        patches = []
        for i in range(4):
            for j in range(4):
                value = max(0.0, float(expected[i, j]))
                total += value
                patches.append(value)
                border += value if i in (0, 3) or j in (0, 3) else 0
                inside += value * (mask[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] / 255).mean()
        patches.sort(reverse=True)
        half = next(n for n in range(1, 17) if sum(patches[:n]) >= total / 2)
        assert row["on_border"] == pytest.approx(border / total, abs=1e-4) and row["patches_with_half"] == half
        is_known = row["file"] == "dog/01.png"
        assert (row["on_object"] is not None) == is_known
        if is_known:
            assert row["on_object"] == pytest.approx(inside / total, abs=5e-3)
    by_class = {label: [] for label in LABELS}
    for row in found.table:
        by_class[row["truth"]].append(row["unusual"])
    assert all(sorted(ranks) == list(range(1, len(ranks) + 1)) for ranks in by_class.values())


def test_one_pass_is_enough(explainer, folder):
    calls = []
    explainer._module.register_forward_hook(lambda *_: calls.append(1))
    explainer(folder / "dog" / "01.png")  # finds the structure
    calls.clear()
    vit_demo.audit(explainer, folder, batch_size=6)
    assert len(calls) == 2


def test_tests_of_faithfulness_are_in_one_unit(explainer, folder):
    found, compared = vit_demo.audit(explainer, folder, faithfulness=True, limit=4), 0
    for row in found.table:
        expected = explainer(folder / row["file"]).faithfulness("libra_fullgrad", label=row["truth"], seeds=0)
        if expected.measured == "probability":  # which is the logit where the class is improbable
            area = expected.insertion_area - expected.deletion_area
            assert row["insertion_minus_deletion"] == pytest.approx(area, abs=1e-3)
            compared += 1
    assert compared


@pytest.mark.parametrize("method", ["rollout", "grad_cam", "attnlrp", "occlusion"])
def test_any_method_gives_the_maps(explainer, folder, method):
    found = vit_demo.audit(explainer, folder, method=method, limit=3)
    for row, values in zip(found.table, found.maps, strict=True):
        label = None if method == "rollout" else row["truth"]
        expected = explainer(folder / row["file"]).heatmap(method, label)
        assert np.allclose(values, expected, atol=2e-3 * abs(expected).max() + 1e-7)


def test_evidence_against_a_class(explainer, folder):
    found = vit_demo.audit(explainer, folder, against="fish")
    row, values = next((row, one) for row, one in zip(found.table, found.maps, strict=True) if row["truth"] != "fish")
    expected = explainer(folder / row["file"]).heatmap("libra_fullgrad", row["truth"], against="fish")
    assert np.allclose(values, expected, atol=2e-3 * abs(expected).max())


class Photos(Dataset):
    """Inputs with the index of their class; one cannot be used."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        x = torch.randn(3, 16, 16, generator=torch.Generator().manual_seed(index))
        return (x * torch.nan if index == 3 else x), torch.tensor(index % 3)


def test_data_sets_generators_lists_and_dicts(explainer, folder):
    found = vit_demo.audit(explainer, Photos())
    assert [(row["file"], row["truth"]) for row in found.table] == [(str(n), LABELS[n % 3]) for n in (0, 1, 2, 4)]
    assert [name for name, _ in found.problems] == ["3"] and isinstance(found.images[0], bytes)
    paths = sorted(folder.rglob("*.png"))
    truths = [path.parent.name for path in paths]
    expected = vit_demo.audit(explainer, folder).table
    kinds = [
        vit_demo.audit(explainer, dict(zip(paths, truths, strict=True))),
        vit_demo.audit(explainer, paths, truths),
        vit_demo.audit(explainer, (Image.open(path) for path in paths), truths),
        vit_demo.audit(explainer, paths, {str(path): path.parent.name for path in paths}),
    ]
    for found in kinds:
        assert [row["prediction"] for row in found.table] == [row["prediction"] for row in expected]
        assert [row["right"] for row in found.table] == [row["right"] for row in expected]
    without = vit_demo.audit(explainer, paths[:2]).table
    assert [(row["truth"], row["right"]) for row in without] == [(None, None)] * 2


def test_boxes_of_a_table_and_of_coco_are_masks(explainer, folder, tmp_path):
    mask, names = np.zeros((16, 16), bool), ["cat/00.png", "dog/01.png"]
    mask[4:15, 2:9] = True
    (tmp_path / "masks" / "cat").mkdir(parents=True)
    Image.fromarray(255 * mask.astype(np.uint8)).save(tmp_path / "masks" / "cat" / "00.webp", lossless=True)
    lines = ["\ufefffile,left,top,right,bottom", "cat/00.png,2,4,6,15", "00.png,6,4,9,15"]
    (tmp_path / "boxes.csv").write_text("\n".join([*lines, "cat/00.png,6,4,9,15"]), encoding="utf-8")
    images = [{"id": 7, "file_name": "cat/00.png"}]
    boxes = [{"image_id": 7, "bbox": [2, 4, 7, 11]}]
    (tmp_path / "coco.json").write_text(json.dumps({"images": images, "annotations": boxes}))
    pictures = [folder / name for name in names]
    whole = {str(pictures[0]): mask}
    expected = vit_demo.audit(explainer, {path: path.parent.name for path in pictures}, masks=whole).table
    assert expected[0]["object_area"] == pytest.approx(mask.mean()) and expected[1]["object_area"] is None
    for masks in (tmp_path / "masks", tmp_path / "boxes.csv", tmp_path / "coco.json", {"cat/00": [2, 4, 9, 15]}):
        table = vit_demo.audit(explainer, folder, masks=masks).table
        for name in ("on_object", "object_area"):
            assert table[0][name] == pytest.approx(expected[0][name], abs=1e-6), masks
        assert all(row["on_object"] is None for row in table[1:])
    as_list = vit_demo.audit(
        explainer, [to_input(Image.open(path)) for path in pictures], masks=[None, np.ones((16, 16), bool)]
    )
    assert as_list.table[1]["on_object"] == pytest.approx(1) and as_list.table[0]["on_object"] is None


def test_a_mask_of_a_photo_is_cropped_as_the_photo_is(tmp_path):
    mask = Image.new("L", (200, 120))
    mask.paste(255, (20, 10, 130, 90))
    Image.effect_noise((200, 120), 90).convert("RGB").save(tmp_path / "wide.png")
    found = vit_demo.audit("photos-tiny", [tmp_path / "wide.png"], masks=[mask])
    ex = vit_demo.explore(tmp_path / "wide.png", "photos-tiny")
    left, top, right, bottom = ex.geometry.box
    inside = 0.0
    for x in np.arange(left, right) + 0.5:
        for y in np.arange(top, bottom) + 0.5:
            inside += 20 <= x < 130 and 10 <= y < 90
    assert found.table[0]["object_area"] == pytest.approx(inside / ((right - left) * (bottom - top)), abs=0.02)


def test_what_cannot_be_used_is_listed_and_nothing_lost(explainer, folder):
    (folder / "dog" / "damaged.png").write_bytes(b"no picture")
    (folder / "dog" / "notes.txt").write_text("no picture")
    found = vit_demo.audit(explainer, folder, masks={"cat/00": np.zeros((5, 5), np.uint8)})
    assert len(found.table) == 12
    assert dict(found.problems)["cat/00.png"] == "The mask has 5 x 5 pixels and the picture 16 x 16: make them equal."
    assert "dog/damaged.png" in dict(found.problems) and len(found.problems) == 2


def test_masks_of_other_pictures_are_told(explainer, folder, tmp_path):
    found = vit_demo.audit(explainer, folder, masks={"bird/00": np.ones((16, 16), bool)})
    assert found.problems == [
        ("masks", "None of them has the name of a picture: bird/00, and cat/00.png, for example.")
    ]
    (tmp_path / "masks").mkdir()
    with pytest.raises(InputError, match="holds no masks"):
        vit_demo.audit(explainer, folder, masks=tmp_path / "masks")


def test_folders_are_classes_before_the_first_pass(explainer, folder):
    calls = []
    (folder / "fish").rename(folder / "unicorn")
    explainer._module.register_forward_hook(lambda *_: calls.append(1))
    explainer(folder / "dog" / "01.png")  # finds the structure
    calls.clear()
    with pytest.raises(InputError, match="no class 'unicorn'"):
        vit_demo.audit(explainer, folder, batch_size=1)
    assert not calls


def test_a_second_run_goes_on_where_the_first_was_ended(explainer, folder, tmp_path):
    paths = sorted(folder.rglob("*.png"))

    class Ended(list):
        def __getitem__(self, index):
            if index == 7:
                raise KeyboardInterrupt
            return super().__getitem__(index)

    with pytest.raises(KeyboardInterrupt):
        vit_demo.audit(explainer, Ended(paths), batch_size=3, out=tmp_path / "out")
    with (tmp_path / "out" / FILE).open("a") as file:
        file.write('{"row": {"file": "cut')  # as a full disk leaves it
    calls = []
    explainer._module.register_forward_hook(lambda _, args, output: calls.append(len(args[0])))
    again = vit_demo.audit(explainer, paths, batch_size=3, out=tmp_path / "out")
    assert sum(calls) == 12 - 6
    assert again.table == vit_demo.audit(explainer, paths, batch_size=3).table
    calls.clear()
    Image.effect_noise((16, 16), 90).convert("RGB").save(paths[2])  # another picture of the same name
    vit_demo.audit(explainer, paths, batch_size=3, out=tmp_path / "out")
    assert sum(calls) == 1
    calls.clear()
    corrected = vit_demo.audit(
        explainer, {path: "dog" if path == paths[0] else None for path in paths}, out=tmp_path / "out"
    )
    assert sum(calls) == 1 and corrected.table[0]["truth"] == "dog"
    with pytest.raises(InputError, match="by other choices: name another folder"):
        vit_demo.audit(explainer, paths, method="rollout", out=tmp_path / "out")
    with torch.no_grad():
        explainer._module.head.weight.add_(0.1)
    with pytest.raises(InputError, match="another model"):
        vit_demo.audit(explainer, paths, out=tmp_path / "out")


def test_the_table_is_written(explainer, folder, tmp_path):
    found = vit_demo.audit(explainer, folder)
    found.to_csv(tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8-sig")))
    assert [row["file"] for row in rows] == [row["file"] for row in found.table]
    assert float(rows[0]["probability"]) == found.table[0]["probability"] and rows[0]["on_object"] == ""


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "\u2028=1"]
HOSTILE = [*FORMULAS, "a\nb", "a\x1b[2J", "a\x00b", "\udcff.png"]


@pytest.mark.parametrize("text", [*HOSTILE, "Käse", 'a,"b"', "plain.png"])
def test_no_program_takes_a_cell_of_the_table_for_a_formula(explainer, folder, tmp_path, text):
    found = vit_demo.audit(explainer, folder)
    for name, value in found.table[0].items():
        if isinstance(value, str):
            found.table[0][name] = text
    found.table[0]["margin"] = -0.25
    found.to_csv(tmp_path / "table.csv")
    raw = (tmp_path / "table.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf") and raw.count(b"\n") == 1 + len(found.table)
    row = next(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8-sig", newline="")))
    assert row["margin"] == "-0.25", "a number stays one"
    for name, value in found.table[0].items():
        if isinstance(value, str):
            assert row[name].isprintable() and row[name].lstrip()[0] not in "=+-@＝"
            assert row[name] == text or text in HOSTILE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pictures": "nowhere"}, "nowhere cannot be read"),
        ({"pictures": []}, "None of the pictures can be used: there are none."),
        ({"pictures": 5}, "a folder, a list or a data set, not int"),
        ({"truth": ["cat"]}, "There are 1 truths for 2 pictures"),
        ({"truth": ["cat", "bird"]}, "no class 'bird'"),
        ({"truth": [0, 3]}, "no class 3: choose one of its 3 labels"),
        ({"truth": [0, -1]}, "no class -1: choose one of its 3 labels"),
        ({"pictures": (name for name in ["a.png"]), "truth": []}, "Truths are a list with one for each picture"),
        ({"truth": 3}, "Truths are a list with one for each picture"),
        ({"masks": "nowhere.csv"}, "holds no masks"),
        ({"limit": 0}, "The limit must be a whole number from 1"),
        ({"batch_size": 0}, "The batch size must be a whole number from 1"),
        ({"method": "nothing"}, "nothing"),
        ({"against": "bird"}, "no class 'bird': choose one of its 3 labels"),
        ({"method": "rollout", "against": "dog"}, "does not compare two classes"),
    ],
)
def test_bad_input_is_one_sentence(explainer, folder, change, words):
    arguments = {"pictures": sorted(folder.rglob("*.png"))[:2], **change}
    with pytest.raises(InputError, match=words):
        vit_demo.audit(explainer, **arguments)


@pytest.mark.parametrize(
    "content", ["", "file,left,top,right,bottom\n", "a,b\n1,2", "file,left,top,right,bottom\na.png,1,2,x,4"]
)
def test_a_table_that_holds_no_boxes(explainer, folder, tmp_path, content):
    (tmp_path / "boxes.csv").write_text(content)
    with pytest.raises(InputError, match=r"holds no masks: give a folder of them, COCO's JSON, or a CSV"):
        vit_demo.audit(explainer, folder, masks=tmp_path / "boxes.csv")


def test_a_network_without_classes(folder):
    from vit_demo.model import ViT, ViTConfig

    model = ViT(ViTConfig(image_size=16, patch_size=4, num_classes=0, embed_dim=24, depth=1, num_heads=3)).eval()
    with pytest.raises(InputError, match="has no classes: choose a model with a classifier head"):
        vit_demo.audit(model, folder, transform=to_input)
