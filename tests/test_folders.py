"""Which pictures of a folder each command takes, whatever else lies there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from unicodedata import normalize

import pytest

import vit_demo
from vit_demo.auditing.pictures import items_of
from vit_demo.auditing.run import class_index
from vit_demo.cli import main
from vit_demo.cli.pictures import find_pictures
from vit_demo.errors import InputError
from vit_demo.inference.sequence import find_class
from vit_demo.training.labelled_folder import folder_classes, labelled_folders, labelled_pictures
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights.taught_heads import check_labels

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
NFC, NFD = normalize("NFC", "Käse"), normalize("NFD", "Käse")
FINDERS = {
    "evaluate": lambda folder: [path for path, _ in labelled_pictures(folder, ["3", "7", "9"])],
    "teach": lambda folder: [path for files in labelled_folders(folder).values() for path in files],
    "audit": lambda folder: [item.image for item in items_of(folder, None, None)[0]],
    "explain": lambda folder: [Path(one.name) for one in find_pictures([str(folder / "**" / "*.*")])],
    "explain, every class": lambda folder: [Path(one.name) for one in find_pictures([str(folder / "*" / "**" / "*")])],
}
OWN = {"3/a.png", "3/b.PNG", "7/c.png", "7/d.png"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two digits of each of two classes."""
    for name in OWN:
        (tmp_path / "digits" / name).parent.mkdir(parents=True, exist_ok=True)
        example_picture(int(name[0])).rotate(3 * ("b" in name or "d" in name)).save(tmp_path / "digits" / name)
    return tmp_path / "digits"


def put(*names):
    """Adds pictures."""

    def change(folder):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            example_picture(3).save(folder / name)

    return change


def link(**links):
    """Adds links to folders, by their targets from the folder; ``other`` is one beside it."""

    def change(folder):
        put("../other/in/e.png")(folder)
        for name, target in links.items():
            (folder / name.replace("_", "/")).symlink_to(folder / target, target_is_directory=True)

    return change


@pytest.mark.parametrize("command", FINDERS)
@pytest.mark.parametrize(
    ("change", "added"),
    [
        (put("3/.ipynb_checkpoints/a-checkpoint.png", ".ipynb_checkpoints/3/a.png"), []),
        (put("3/._a.png", "7/.hidden.png"), []),
        (put("3/deep/.Trash-0/files/a.png", ".Trash-0/a.png"), []),
        (put("3/@eaDir/a.png/SYNO.png", "@eaDir/a.png", "7/x/__MACOSX/a.png", "$RECYCLE.BIN/S/a.png"), []),
        (put("3/deep/er/f.png"), ["3/deep/er/f.png"]),
        (link(**{"3_more": "../other"}), ["3/more/in/e.png"]),
        (link(**{"9": "../other/in"}), ["9/e.png"]),
        (link(**{"3_one": "../other/in", "3_two": "../other/in"}), ["3/one/e.png"]),
        (link(**{"3_self": "3", "3_up": ".", "7_up": "..", "self": ".", "above": ".."}), []),
        (link(**{f"3_x{n}": "../other" for n in range(30)} | {f"../other_in_y{n}": "../other" for n in range(30)}),
         ["3/x0/in/e.png"]),
        (lambda folder: (folder / "3" / "gone.png").symlink_to("nowhere"), ["3/gone.png"]),
    ],
    ids=["notebooks", "forks", "trash", "file servers", "deep", "link", "class", "twice", "loops", "many", "gone"],
)  # fmt: skip
def test_every_command_takes_the_same_pictures(folder, command, change, added):
    change(folder)
    found = [path.relative_to(folder).as_posix() for path in FINDERS[command](folder)]
    assert sorted(found) == sorted([*OWN, *added])


@pytest.mark.parametrize("command", FINDERS)
def test_a_folder_that_cannot_be_read_is_told_as_a_file_is(folder, command, monkeypatch):
    put("3/locked/x.png")(folder)

    def walk(top, onerror, followlinks):
        for place, folders, files in os.walk(top, onerror=onerror, followlinks=followlinks):
            if Path(place).name == "locked":
                onerror(PermissionError(13, "Permission denied", place))
            else:
                yield place, folders, files

    monkeypatch.setattr("vit_demo.folders.os", SimpleNamespace(path=os.path, walk=walk))
    found = {path.relative_to(folder).as_posix() for path in FINDERS[command](folder)}
    assert found == {*OWN, "3/locked"}


@pytest.mark.parametrize(
    "command",
    [
        "evaluate digits-tiny --pictures digits",
        "teach digits --model digits-tiny",
        "audit digits-tiny --pictures digits --out site",
        "explain digits/** --preset digits-tiny --json",
        "gallery digits/3 digits/7 --preset digits-tiny --patch-size 14 --out site",
        "explain digits/3 digits/7 --preset digits-tiny --patch-size 14 --out site",
    ],
)
def test_one_file_that_cannot_be_read_ends_nothing_and_is_named(folder, command, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    (folder / "3" / "damaged.png").write_bytes(b"no picture")
    (folder / "7" / "gone.png").symlink_to("nowhere")
    put("3/.ipynb_checkpoints/x.png", "3/._y.png")(folder)
    command = command.replace("digits/**", "digits/**/*.*")
    assert main(command.split()) == (0 if command.startswith("evaluate") else 2)
    printed = capsys.readouterr()
    told = [
        line for line in (printed.out + printed.err).splitlines() if "damaged.png: " in line or "gone.png: " in line
    ]
    assert len(told) == 2 and "Traceback" not in printed.err and ".ipynb" not in printed.out + printed.err
    assert Path("taught.safetensors").exists() == command.startswith("teach")
    if "--json" in command:
        assert sum("maps" in json.loads(line) for line in printed.out.splitlines()) == 4
    if "--out" in command:
        assert any(Path("site").iterdir())


@pytest.mark.parametrize("command", ["evaluate", "teach", "audit"])
@pytest.mark.parametrize("parts", [("train", "val"), ("Train", "test"), ("train",), ("test", "training", "validation"),
                                   ("train2017", "val2017"), ("test_1", "train_1")])  # fmt: skip
def test_what_lies_above_the_folders_of_classes_is_no_class(tmp_path, command, parts):
    for part in parts:
        put(f"{part}/3/a.png", f"{part}/7/b.png")(tmp_path)
    with pytest.raises(InputError, match=rf"holds {' and '.join(parts)}, which are no classes: give one of them, as "):
        FINDERS[command](tmp_path)
    assert len(FINDERS[command](tmp_path / parts[0])) == 2
    if len(parts) > 1:
        put("overview.png")(tmp_path)
        with pytest.raises(InputError, match="which are no classes"):
            FINDERS[command](tmp_path)


@pytest.mark.parametrize(
    "names", [["train/a.png"], ["train/a.png", "plane/b.png"], ["train/steam/a.png", "plane/b.png"]]
)
def test_a_class_may_be_called_train(tmp_path, names):
    put(*names)(tmp_path)
    assert set(labelled_folders(tmp_path)) == {name.split("/")[0] for name in names}


@pytest.mark.parametrize(("given", "known"), [(NFD, NFC), (NFC, NFD), (NFD, NFD), (f" {NFD}_".strip("_"), NFC)])
def test_names_are_compared_whichever_way_they_are_written(given, known):
    labels = ["Brot", known]
    assert folder_classes([given], labels) == {given: 1} and class_index(labels, given) == 1
    assert given != given.strip() or find_class(labels, given, "It") == 1
    assert check_labels(["Brot", given]) == ("Brot", NFC)


def test_two_classes_that_look_the_same_are_refused(folder):
    for name, old in ((NFC, "3"), (NFD, "7")):
        (folder / old).rename(folder / name)
    with pytest.raises(InputError, match="name one class, 'Käse': merge them"):
        labelled_pictures(folder, ["Brot", NFC])
    with pytest.raises(InputError, match="Two classes are called “Käse”"):
        vit_demo.teach(labelled_folders(folder), "digits-tiny")


def test_truths_are_by_names_whichever_way_they_are_written(folder):
    (folder / "3" / "a.png").rename(folder / "3" / f"{NFD}.png")
    found = vit_demo.audit(
        "digits-tiny", folder, truth={f"3/{NFC}.png": "3"}, masks={f"3/{NFC}": [0, 0, 9, 9]}, limit=2
    )
    row = next(row for row in found.table if row["file"] == f"3/{NFD}.png")
    assert row["truth"] == "3" and row["object_area"] is not None


@pytest.mark.parametrize(
    "names",
    [("a.png", "A.png"), ("a.png", "a.PNG", "A.Png"), (f"{NFC}.png", f"{NFD}.png"), ("a.png", "A.png", "A-2.png")],
)
def test_files_that_differ_by_case_do_not_overwrite_each_other(tmp_path, names, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(*(f"{number}/{name}" for number, name in enumerate(names)))(tmp_path)
    command = ["explain", *(f"{number}/{name}" for number, name in enumerate(names)), "--out", "out"]
    assert main([*command, "--preset", "digits-tiny", "--patch-size", "14", "--method", "rollout"]) == 0
    written = [normalize("NFC", path.name).casefold() for path in Path("out").glob("*-input.png")]
    assert len(written) == len(set(written)) == len(names)


def test_two_audits_into_one_folder_at_once_are_refused(folder, tmp_path):
    pictures, errors = sorted(folder.rglob("*.png")), []

    def one_by_one():
        for path in pictures:
            if path == pictures[-1]:
                with pytest.raises(
                    InputError, match=r"Another audit writes into .*: wait for its end, or name another"
                ):
                    vit_demo.audit("digits-tiny", pictures, out=tmp_path / "out")
                errors.append(path)
            yield path

    vit_demo.audit("digits-tiny", one_by_one(), batch_size=1, out=tmp_path / "out")
    assert len(errors) == 1
    assert len(vit_demo.audit("digits-tiny", pictures, out=tmp_path / "out").table) == len(pictures)
