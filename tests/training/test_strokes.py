import torch

from vit_demo.training.strokes import SHAPES, drawn_digits


def test_drawn_digits_follow_the_convention_and_are_each_their_own():
    drawn = drawn_digits(2 * len(SHAPES), seed=0)
    assert drawn.images.shape == (2 * len(SHAPES), 1, 28, 28) and drawn.images.dtype == torch.uint8
    assert set(drawn.labels.tolist()) == set(range(10))
    ink = drawn.images[:, 0] > 50
    for extent in (ink.any(dim).sum(1) for dim in (1, 2)):
        assert (extent <= 22).all()
    assert len({image.numpy().tobytes() for image in drawn.images}) == len(drawn)


def test_the_seed_decides_the_hands():
    first, again, other = (drawn_digits(3, seed).images for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
