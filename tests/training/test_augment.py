import pytest
import torch
import torch.nn.functional as F

from vit_demo.training.augment import (
    _adjust_sharpness,
    augment_digits,
    augment_photos,
    crop_and_resize,
    mix_up_or_cut_mix,
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
    width, height, x, y = random_crops(3000, aspects).unbind(1)
    assert 0.4 < (width < 0).float().mean() < 0.6, "half of them are flipped"
    width = width.abs()
    assert (width <= 1).all() and (x.abs() + width <= 1 + 1e-6).all() and (y.abs() + height <= 1 + 1e-6).all()
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


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_images_and_targets_are_mixed_alike(p):
    torch.manual_seed(0)
    marks = torch.eye(5)[:, :, None, None].expand(-1, -1, 12, 12).contiguous()  # image i is 1 in channel i alone
    for _ in range(8):  # sometimes MixUp, sometimes CutMix
        images, targets = mix_up_or_cut_mix(p)(marks, torch.eye(5))
        assert torch.allclose(images.mean((2, 3)), targets, atol=1e-5)
        own, previous = targets.diagonal(), targets.roll(1, 1).diagonal()
        assert torch.allclose(own + targets.roll(-1, 0).diagonal(), torch.ones(5)) or torch.allclose(
            own + previous, torch.ones(5)
        )
        assert (p == 1) or torch.equal(targets, torch.eye(5))
