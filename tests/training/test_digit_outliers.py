import torch

from vit_demo.training.data import OUTLIER, ImageDataset
from vit_demo.training.digit_outliers import (
    DRAWINGS_PER_SYMBOL,
    EVALUATION_KINDS,
    EVALUATION_SYMBOLS,
    TRAINING_SYMBOLS,
    evaluation_digit_outliers,
    make_digit_outliers,
)

ONES = ImageDataset(
    torch.nn.functional.pad(torch.full((5, 1, 20, 3), 255, dtype=torch.uint8), (12, 13, 4, 4)),
    torch.ones(5, dtype=torch.int64),
    tuple("0123456789"),
)


def test_outliers_are_preprocessed_like_digits_and_differ_from_each_other():
    drawn = make_digit_outliers(30, 0, ONES)
    assert drawn.images.shape == (30, 1, 28, 28) and drawn.images.dtype == torch.uint8
    assert set(drawn.labels.tolist()) == {OUTLIER}
    assert (drawn.images.amax((1, 2, 3)) == 255).all()
    assert len({image.numpy().tobytes() for image in drawn.images}) > 24
    assert torch.equal(make_digit_outliers(30, 0, ONES).images, drawn.images)


def test_a_pair_of_ones_is_two_strokes_with_a_gap():
    pair = make_digit_outliers(3, 0, ONES).images[2, 0]
    middle = pair[14] > 127
    changes = (middle[1:] != middle[:-1]).sum()
    assert changes == 4


def test_evaluation_outliers_are_fixed_and_not_trained_on():
    assert len(EVALUATION_KINDS) == 4
    for kind in EVALUATION_KINDS:
        drawn = evaluation_digit_outliers(kind)
        assert len(drawn) == DRAWINGS_PER_SYMBOL * (len(EVALUATION_SYMBOLS[kind]) if kind in EVALUATION_SYMBOLS else 20)
        assert torch.equal(drawn.images, evaluation_digit_outliers(kind).images), "the same drawings for everyone"
    assert not any(strokes in TRAINING_SYMBOLS for shapes in EVALUATION_SYMBOLS.values() for strokes in shapes.values())
