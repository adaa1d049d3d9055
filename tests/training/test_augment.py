import pytest
import torch
import torch.nn.functional as F

from vit_demo.training.augment import (
    _adjust_sharpness,
    augment_digits,
    augment_photos,
    crop_and_resize,
    flip_crops,
    jitter_crops,
    random_crops,
)


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
    assert (ink > 20).all(), "no digit was shifted out of the frame or eroded away"
    border = torch.cat([changed[:, 0, 0], changed[:, 0, -1], changed[:, 0, :, 0], changed[:, 0, :, -1]], dim=1)
    assert border.mean() < 0.05


def test_half_of_the_photos_are_flipped():
    torch.manual_seed(0)
    ramp = torch.linspace(0, 1, 32).expand(400, 3, 32, 32).contiguous()
    changed = augment_photos(ramp)
    rising = (changed[..., -1].mean((1, 2)) > changed[..., 0].mean((1, 2))).float().mean()
    assert 0.4 < rising < 0.6


def test_crops_of_a_squeezed_photo_keep_its_proportions():
    torch.manual_seed(0)
    aspects = torch.tensor([0.5, 1.0, 2.0]).repeat_interleave(1000)
    crops = random_crops(3000, None, aspects)
    width, height, x, y = crops.unbind(1)
    assert (width.abs() <= 1).all() and (x.abs() + width <= 1 + 1e-6).all() and (y.abs() + height <= 1 + 1e-6).all()
    ratio = width * aspects / height  # in pixels of the photo
    whole = (width == 1) & (height == 1)
    free = (width < 1) & (height < 1)
    assert (ratio[free].log().abs() <= torch.tensor(4 / 3).log() / 1 + 1e-5).all()
    for aspect in (0.5, 2.0):
        mine = aspects == aspect
        middle = mine & (x == 0) & (y == 0) & ((ratio - 1).abs() < 1e-5)
        assert 0.1 < middle.sum() / mine.sum() < 0.2, "the square in the middle, as the page cuts it"
        assert 0.06 < (whole & mine).sum() / mine.sum() < 0.14, "the whole photo, squashed"
    area = (width * height)[free]
    assert 0.19 < area.min() < 0.25 and area.max() > 0.8


def test_the_central_crop_of_a_squeezed_photo_restores_its_proportions():
    ramp = torch.linspace(0, 1, 60).expand(1, 1, 30, 60)  # twice as wide as high
    squeezed = F.interpolate(ramp, (60, 60), mode="bilinear", align_corners=False)
    middle = crop_and_resize(squeezed, torch.tensor([[0.5, 1.0, 0.0, 0.0]]), 30)
    assert torch.allclose(middle[0, 0, 15], ramp[0, 0, 15, 15:45], atol=0.01)


def test_sharpness_changes_fine_detail_only():
    torch.manual_seed(0)
    coarse = F.interpolate(torch.rand(1, 3, 2, 2), (32, 32), mode="bilinear").expand(3, -1, -1, -1)
    fine = torch.where(torch.arange(32) % 2 == 0, 0.1, -0.1)
    softer, same, sharper = _adjust_sharpness(0.3 + 0.4 * coarse + fine, torch.tensor([1.0, 0.0, -1.0]))

    def stripes(image):
        return (image[..., ::2] - image[..., 1::2]).mean().item()

    assert stripes(softer) == pytest.approx(0, abs=0.01)
    assert torch.allclose(same, 0.3 + 0.4 * coarse[1] + fine, atol=1e-6)
    assert stripes(sharper) == pytest.approx(0.4, abs=0.02)
    assert torch.allclose(F.avg_pool2d(sharper, 8), F.avg_pool2d(same, 8), atol=0.01)


def test_jittered_crops_stay_close_to_the_originals():
    torch.manual_seed(0)
    crops = flip_crops(random_crops(2000), torch.arange(2000) % 2 == 0)
    jittered = jitter_crops(crops)
    scale = jittered[:, :2] / crops[:, :2]
    assert 0.9 <= scale.min() < 0.91 and 1.09 < scale.max() <= 1.1 + 1e-6, "flipped crops stay flipped"
    shift = (jittered[:, 2:] - crops[:, 2:]) / crops[:, :2].abs()
    assert -0.1 - 1e-5 <= shift.min() < -0.09 and 0.09 < shift.max() <= 0.1 + 1e-5
    assert shift.mean(0).abs().max() < 0.01 and (scale.mean(0) - 1).abs().max() < 0.01
    changes = torch.cat([scale - 1, shift], dim=1)
    correlation = torch.corrcoef(changes.T) - torch.eye(4)
    assert correlation.abs().max() < 0.1, "sides and centre vary independently"


def test_a_jittered_crop_shows_what_the_crop_shows_but_for_its_edges():
    torch.manual_seed(0)
    coarse = F.interpolate(torch.rand(1, 3, 4, 4), (64, 64), mode="bicubic").clamp(0, 1).expand(50, -1, -1, -1)
    crops = torch.tensor([[0.5, 0.5, 0.1, -0.2]]).expand(50, 4)
    difference = (crop_and_resize(coarse, jitter_crops(crops)) - crop_and_resize(coarse, crops)).abs()
    others = (coarse - crop_and_resize(coarse, crops)).abs()
    assert difference.mean() < others.mean() / 4
