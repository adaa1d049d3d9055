import torch
import torch.nn.functional as F

from vit_demo.training.trainer import GROUP, augment_digits, augment_photos, vary_strokes


def test_each_group_of_images_is_changed_its_own_way_within_the_range():
    torch.manual_seed(0)
    digit = (255 * F.interpolate(torch.rand(1, 1, 5, 5), (28, 28), mode="bilinear")).to(torch.uint8)
    photo = (255 * F.interpolate(torch.rand(1, 3, 5, 5), (30, 40), mode="bilinear")).to(torch.uint8)[0]
    digits, photos = augment_digits(digit.expand(40, -1, -1, -1)), augment_photos([photo] * 40, 32)
    assert digits.shape == (40, 1, 28, 28) and photos.shape == (40, 3, 32, 32)
    for changed in (digits, photos):
        assert changed.min() >= 0 and changed.max() <= 1
    assert len({image.numpy().tobytes() for image in digits}) == 40 / GROUP
    assert len({image.numpy().tobytes() for image in photos}) > 36, "each photo has a crop of its own"


def test_a_digit_stays_in_its_frame():
    torch.manual_seed(0)
    digit = torch.zeros(400, 1, 28, 28, dtype=torch.uint8)
    digit[:, :, 4:24, 12:15] = 255  # a one, as tall as MNIST's
    changed = augment_digits(digit)
    assert (changed.sum((1, 2, 3)) > 15).all(), "no digit was shifted out of the frame or eroded away"
    border = torch.cat([changed[:, 0, 0], changed[:, 0, -1], changed[:, 0, :, 0], changed[:, 0, :, -1]], dim=1)
    assert border.mean() < 0.05
    height = (changed[:, 0] > 0.3).any(2).sum(1).float()
    assert height.std() > 1.5, "some are stretched"


def test_strokes_get_thicker_and_thinner_and_keep_their_intensity():
    torch.manual_seed(0)
    stroke = torch.zeros(1, 1, 28, 28)
    stroke[..., 4:24, 12:15] = 0.8
    changed = [vary_strokes(stroke) for _ in range(40)]
    assert all(image.max() == 1 for image in changed)
    widths = [float((image[0, 0, 14] / image.max()).sum()) for image in changed]
    assert min(widths) < 2.5 and max(widths) > 4


def test_crops_are_flipped_and_keep_their_proportions_or_show_the_whole_photo():
    torch.manual_seed(0)
    x, y = torch.meshgrid(torch.arange(60), torch.arange(30), indexing="xy")  # twice as wide as high
    photo = torch.stack([4 * x, 8 * y, torch.zeros_like(x)]).to(torch.uint8)
    changed = augment_photos([photo] * 400, 24)[:, :2]
    across = (changed[:, 0, 12, -3] - changed[:, 0, 12, 2]) / 4  # of the photo's width, in 19 of 24 pixels
    down = (changed[:, 1, -3, 12] - changed[:, 1, 2, 12]) / 8
    assert 0.4 < (across < 0).float().mean() < 0.6, "half of them are flipped"
    ratio = (across.abs() / down).log()
    squashed = (ratio - torch.tensor(2.0).log()).abs() < 0.15
    assert 0.05 < squashed.float().mean() < 0.2, "the whole photo"
    assert (ratio[~squashed].abs() < torch.tensor(4 / 3).log() + 0.2).float().mean() > 0.95
