import torch

from recipes.digits import DIGITS
from recipes.drawings import (
    DIGIT_STROKES,
    DRAWINGS_PER_SYMBOL,
    EVALUATION_KINDS,
    EVALUATION_SYMBOLS,
    TRAINING_SYMBOLS,
    evaluation_digit_outliers,
    make_digit_outliers,
    make_synthetic_digits,
)
from recipes.image_dataset import OUTLIER, ImageDataset

ONES = ImageDataset(
    torch.nn.functional.pad(torch.full((5, 1, 20, 3), 255, dtype=torch.uint8), (12, 13, 4, 4)),
    torch.ones(5, dtype=torch.int64),
    DIGITS,
)


def test_synthetic_digits_follow_mnist_s_convention_and_differ_from_each_other():
    drawn = make_synthetic_digits(2 * len(DIGIT_STROKES), seed=0)
    assert drawn.images.shape == (2 * len(DIGIT_STROKES), 1, 28, 28) and drawn.images.dtype == torch.uint8
    assert set(drawn.labels.tolist()) == set(range(10))
    ink = drawn.images[:, 0] > 50
    assert all((extent <= 22).all() for extent in (ink.any(dim).sum(1) for dim in (1, 2)))
    assert len({image.numpy().tobytes() for image in drawn.images}) == len(drawn)


def test_the_seed_determines_the_drawings():
    for draw in (make_synthetic_digits, lambda count, seed: make_digit_outliers(count, seed, ONES)):
        first, again, other = (draw(6, seed).images for seed in (1, 1, 2))
        assert torch.equal(first, again) and not torch.equal(first, other)


def test_outliers_are_preprocessed_like_digits_and_differ_from_each_other():
    drawn = make_digit_outliers(60, 0, ONES)
    assert drawn.images.shape == (60, 1, 28, 28) and set(drawn.labels.tolist()) == {OUTLIER}
    assert (drawn.images.amax((1, 2, 3)) == 255).all()
    assert len({image.numpy().tobytes() for image in drawn.images}) > 45


def test_a_pair_of_ones_is_two_strokes_with_a_gap():
    middle = make_digit_outliers(3, 0, ONES).images[2, 0][14] > 127
    assert (middle[1:] != middle[:-1]).sum() == 4


def test_evaluation_outliers_are_fixed_and_not_trained_on():
    assert len(EVALUATION_KINDS) == 4
    for kind in EVALUATION_KINDS:
        drawn = evaluation_digit_outliers(kind)
        assert len(drawn) == DRAWINGS_PER_SYMBOL * (len(EVALUATION_SYMBOLS[kind]) if kind in EVALUATION_SYMBOLS else 20)
        assert torch.equal(drawn.images, evaluation_digit_outliers(kind).images), "the same drawings for everyone"
    assert not any(strokes in TRAINING_SYMBOLS for shapes in EVALUATION_SYMBOLS.values() for strokes in shapes.values())
