import torch

from vit_demo.training.synthetic_digits import DIGIT_STROKES, make_synthetic_digits


def test_synthetic_digits_follow_mnist_s_convention_and_differ_from_each_other():
    drawn = make_synthetic_digits(2 * len(DIGIT_STROKES), seed=0)
    assert drawn.images.shape == (2 * len(DIGIT_STROKES), 1, 28, 28) and drawn.images.dtype == torch.uint8
    assert set(drawn.labels.tolist()) == set(range(10))
    ink = drawn.images[:, 0] > 50
    for extent in (ink.any(dim).sum(1) for dim in (1, 2)):
        assert (extent <= 22).all()
    assert len({image.numpy().tobytes() for image in drawn.images}) == len(drawn)


def test_the_seed_determines_the_drawings():
    first, again, other = (make_synthetic_digits(3, seed).images for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
