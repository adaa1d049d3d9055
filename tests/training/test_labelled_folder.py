"""What is counted on labelled pictures, by hand."""

import vit_demo
from vit_demo.training.labelled_folder import evaluate_pictures
from vit_demo.web.catalog.example_digits import example_picture


def test_the_accuracy_of_a_class_is_the_share_of_its_pictures_that_are_right(tmp_path):
    pictures = []
    for drawn, label in ((1, 1), (3, 3), (4, 3), (7, 3), (0, 9)):
        example_picture(drawn).save(tmp_path / f"{drawn}.png")
        pictures.append((tmp_path / f"{drawn}.png", label))
    counted = []
    report = evaluate_pictures(vit_demo.Explainer("digits-tiny", patch_size=7), pictures, counted.append)
    assert report["accuracy_by_class"] == {"1": 1, "3": 1 / 3, "9": 0}
    assert round(report["accuracy"], 6) == 2 / 5 and report["pictures"] == sum(counted) == 5
    assert sorted(report["most_frequent_errors"]) == [("3", "4", 1), ("3", "7", 1), ("9", "0", 1)]
