import torch

from vit_demo.training.data import NO_CLASS, Labelled
from vit_demo.training.not_digits import HANDS, KINDS, SIGNS, UNSEEN, not_digits, unsure_drawings

ONES = Labelled(
    torch.nn.functional.pad(torch.full((5, 1, 20, 3), 255, dtype=torch.uint8), (12, 13, 4, 4)),
    torch.ones(5, dtype=torch.int64),
    tuple("0123456789"),
)


def test_drawings_of_no_digit_look_as_the_page_hands_them_over_and_are_each_their_own():
    drawn = not_digits(30, 0, ONES)
    assert drawn.images.shape == (30, 1, 28, 28) and drawn.images.dtype == torch.uint8
    assert set(drawn.labels.tolist()) == {NO_CLASS}
    assert (drawn.images.amax((1, 2, 3)) == 255).all()
    assert len({image.numpy().tobytes() for image in drawn.images}) > 24
    assert torch.equal(not_digits(30, 0, ONES).images, drawn.images)


def test_a_pair_of_ones_is_two_strokes_with_paper_between():
    pair = not_digits(3, 0, ONES).images[2, 0]
    middle = pair[14] > 127
    changes = (middle[1:] != middle[:-1]).sum()
    assert changes == 4


def test_what_is_measured_with_was_not_trained_on():
    assert len(KINDS) == 4
    for kind in KINDS:
        drawn = unsure_drawings(kind)
        assert len(drawn) == HANDS * (len(UNSEEN[kind]) if kind in UNSEEN else 20)
        assert torch.equal(drawn.images, unsure_drawings(kind).images), "the same drawings for everyone"
    assert not any(strokes in SIGNS for shapes in UNSEEN.values() for strokes in shapes.values())
