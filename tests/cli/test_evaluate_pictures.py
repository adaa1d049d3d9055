"""``evaluate --pictures``: any model on a folder with a subfolder of pictures for each class."""

import json
import shutil
from pathlib import Path

import pytest

import vit_demo
from vit_demo.cli import main
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

TINY = ["evaluate", "digits-tiny", "--patch-size", "7"]


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Each example digit in the folder of its class, but the 4 in that of the 9."""
    for digit in range(10):
        folder = tmp_path / "digits" / str(9 if digit == 4 else digit)
        folder.mkdir(parents=True, exist_ok=True)
        example_picture(digit).save(folder / f"{digit}.png")
    return tmp_path / "digits"


def test_it_counts_what_a_plain_loop_counts(digits, capsys):
    assert main([*TINY, "--pictures", str(digits), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    files = sorted(digits.rglob("*.png"))
    predicted = [vit_demo.explore(path, "digits-tiny", patch_size=7).top(5) for path in files]
    right = [top[0][0] == path.parent.name for top, path in zip(predicted, files, strict=True)]
    among = [path.parent.name in dict(top) for top, path in zip(predicted, files, strict=True)]
    assert 0 < sum(right) < 10, "one is in a wrong folder"
    assert report["pictures"] == 10 and report["unreadable"] == []
    assert report["accuracy"] == pytest.approx(sum(right) / 10)
    assert report["accuracy_top5"] == pytest.approx(sum(among) / 10)
    nines = [is_right for path, is_right in zip(files, right, strict=True) if path.parent.name == "9"]
    assert report["accuracy_by_class"]["9"] == pytest.approx(sum(nines) / 2) and "4" not in report["accuracy_by_class"]
    assert ["9", "4", 1] in report["most_frequent_errors"]


def test_a_picture_that_cannot_be_used_is_left_out_and_named(digits, capsys):
    (digits / "3" / "damaged.png").write_bytes(b"no picture")
    assert main([*TINY, "--pictures", str(digits)]) == 0
    printed = capsys.readouterr().out
    assert "10 pictures" in printed and "1 pictures left out" in printed and "damaged.png: " in printed


def test_photos_are_found_by_label_with_hyphens_or_underscores(tmp_path, capsys):
    for name, folder in (("lion", "Lion"), ("german-shepherd", "german_shepherd")):
        (tmp_path / folder).mkdir()
        shutil.copy(EXAMPLE_PHOTOS[name].path, tmp_path / folder)
    assert main(["evaluate", "photos-tiny", "--pictures", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["pictures"] == 2 and set(report["accuracy_by_class"]) == {"lion", "German shepherd"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "3").rename(folder / "three"), "The model has no class 'three': rename the folder."),
        (lambda folder: shutil.rmtree(folder), "cannot be read"),
        (lambda folder: [shutil.rmtree(one) for one in folder.iterdir()], "holds no labelled pictures"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_sentence(digits, capsys, change, words):
    change(digits)
    assert main([*TINY, "--pictures", str(digits)]) == 2
    assert words in capsys.readouterr().err


def test_the_wordnet_ids_of_imagenet_are_its_classes_in_order():
    """The lion and the tabby cat of the package's own list are where WordNet's ids sort."""
    from timm.data import ImageNetInfo

    from vit_demo.weights.imagenet import IMAGENET_LABELS

    ids = ImageNetInfo().label_names()
    assert ids == sorted(ids) and len(ids) == 1000
    assert ids.index("n02129165") == IMAGENET_LABELS.index("lion")
    assert ids.index("n02123045") == next(i for i, label in enumerate(IMAGENET_LABELS) if label.startswith("tabby"))


def test_data_and_pictures_exclude_each_other(digits, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*TINY, "--pictures", str(digits), "--data", str(digits)])
    assert ended.value.code == 2
