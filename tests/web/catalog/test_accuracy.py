"""The accuracy that the page states is that of the training record, set by set."""

from pathlib import Path

import pytest

from vit_demo.web.catalog.menu import EVERYDAY_PHOTOS, PUBLISHED_TOP1, accuracy_note, bundled_accuracy
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import BUNDLED as CHECKPOINT_FOLDER
from vit_demo.weights.checkpoints import read_record

BUNDLED = [preset for preset in PRESETS.values() if preset.source == "bundled"]


@pytest.mark.parametrize("preset", BUNDLED, ids=lambda preset: preset.name)
def test_every_figure_names_its_set(preset):
    for size in preset.patch_sizes:
        note, accuracy = accuracy_note(preset, size), bundled_accuracy(preset, size)
        if preset.name not in EVERYDAY_PHOTOS:
            assert accuracy == 100 * read_record(preset, size)["test_accuracy"][str(size)]
        what = "357 everyday photos" if preset.task == "photos" else "MNIST’s test digits"
        assert f"{accuracy:.1f}\u00a0%" in note and what in note and note.count("%") == 1
    assert accuracy_note(PRESETS["vit-b16"], 16) == accuracy_note(PRESETS["photos-tiny"], 24) == "", "not measured"


def test_the_figures_of_everyday_photos_are_those_beside_the_weights():
    (count, accuracies) = EVERYDAY_PHOTOS["photos-tiny"]
    table = (CHECKPOINT_FOLDER / "README.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if f"{count} everyday photos, all 50 classes" in line)
    assert [float(cell) for cell in row.split("|")[2:6]] == [accuracies[size] for size in (10, 12, 15, 20)]


@pytest.mark.parametrize("name", PUBLISHED_TOP1)
def test_the_published_figures_are_those_of_the_documentation(name):
    text = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    table = text[text.index("| patch | 8 ") :].split("\n\n")[0].splitlines()
    cells = {cell[0]: cell[1:] for cell in (line.strip("| ").split(" | ") for line in table)}
    assert PUBLISHED_TOP1[name] == dict(zip(map(int, cells["patch"]), map(float, cells[f"`{name}`"]), strict=True))
