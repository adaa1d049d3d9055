"""The accuracy that the page states is that of the training record, set by set."""

import pytest

from vit_demo.weights import PRESETS
from vit_demo.weights.bundled_accuracy import EVERYDAY_PHOTOS, TEST_SETS, accuracy_note
from vit_demo.weights.checkpoints import BUNDLED as CHECKPOINT_FOLDER
from vit_demo.weights.checkpoints import read_record

BUNDLED = [preset for preset in PRESETS.values() if preset.source == "bundled"]


@pytest.mark.parametrize("name", TEST_SETS)
def test_the_sets_together_give_the_accuracy_of_the_record(name):
    preset = PRESETS[name]
    for size in preset.patch_sizes:
        counts, shares = zip(*((n, table[size] / 100) for n, table in TEST_SETS[name].values()), strict=True)
        pooled = sum(n * share for n, share in zip(counts, shares, strict=True)) / sum(counts)
        assert pooled == pytest.approx(read_record(preset, size)["test_accuracy"][str(size)], abs=6e-4)


@pytest.mark.parametrize("preset", BUNDLED, ids=lambda preset: preset.name)
def test_every_figure_names_its_set(preset):
    for size in preset.patch_sizes:
        note = accuracy_note(preset, size)
        assert "Test accuracy " in note and note.count("%") == note.count("(") + note.count("everyday photos")
        record = 100 * read_record(preset, size)["test_accuracy"][str(size)]
        assert preset.name in TEST_SETS or f"{record:.1f}\u00a0% (MNIST)" in note


def test_two_sets_are_not_pooled():
    everyday, tiny, nette = (
        table[12] for _, table in (EVERYDAY_PHOTOS["photos-tiny"], *TEST_SETS["photos-tiny"].values())
    )
    assert accuracy_note(PRESETS["photos-tiny"], 12) == (
        f"Right on {everyday}\u00a0% of 357 everyday photos. "
        f"Test accuracy {tiny}\u00a0% (Tiny ImageNet), {nette}\u00a0% (Imagenette)."
    )
    assert accuracy_note(PRESETS["vit-b16"], 16) == ""


def test_nothing_is_said_of_a_size_that_was_not_measured():
    assert accuracy_note(PRESETS["photos-tiny"], 24) == ""


def test_the_figures_of_everyday_photos_are_those_beside_the_weights():
    (count, accuracies) = EVERYDAY_PHOTOS["photos-tiny"]
    table = (CHECKPOINT_FOLDER / "README.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if f"{count} everyday photos, all 50 classes" in line)
    assert [float(cell) for cell in row.split("|")[2:6]] == [accuracies[size] for size in (10, 12, 15, 20)]
