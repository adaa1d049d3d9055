import pytest
import torch
import torch.nn.functional as F

from vit_demo.training.augment import augment_digits, augment_photos


@pytest.mark.parametrize(("augment", "shape"), [(augment_digits, (64, 1, 28, 28)), (augment_photos, (64, 3, 32, 32))])
def test_each_image_is_changed_its_own_way_within_its_range(augment, shape):
    torch.manual_seed(0)
    image = F.interpolate(torch.rand(1, *shape[1:-2], 5, 5), size=shape[2:], mode="bilinear")
    changed = augment(image.expand(shape).contiguous())
    assert changed.shape == shape
    assert changed.min() >= 0 and changed.max() <= 1
    assert len({sample.numpy().tobytes() for sample in changed}) == 64


def test_a_digit_stays_in_its_frame():
    torch.manual_seed(0)
    digit = torch.zeros(200, 1, 28, 28)
    digit[:, :, 4:24, 12:15] = 1  # a one, as tall as MNIST's
    changed = augment_digits(digit)
    ink = changed.sum((1, 2, 3))
    assert (ink > 20).all(), "nobody's digit was pushed out or worn away"
    border = torch.cat([changed[:, 0, 0], changed[:, 0, -1], changed[:, 0, :, 0], changed[:, 0, :, -1]], dim=1)
    assert border.mean() < 0.05


def test_photos_are_mirrored_half_of_the_time():
    torch.manual_seed(0)
    ramp = torch.linspace(0, 1, 32).expand(400, 3, 32, 32).contiguous()
    changed = augment_photos(ramp)
    rising = (changed[..., -1].mean((1, 2)) > changed[..., 0].mean((1, 2))).float().mean()
    assert 0.4 < rising < 0.6
