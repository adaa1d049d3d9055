import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from recipes.augment import GROUPS, Batches, change_colours, change_digits, crop_photos, vary_strokes
from recipes.image_dataset import ImageDataset


def test_each_photo_and_each_group_of_digits_is_changed_its_own_way_within_the_range():
    torch.manual_seed(0)
    digit = (255 * F.interpolate(torch.rand(1, 1, 5, 5), (28, 28), mode="bilinear")).to(torch.uint8)
    photo = (255 * F.interpolate(torch.rand(1, 3, 5, 5), (30, 40), mode="bilinear")).to(torch.uint8)[0]
    digits, crops = change_digits(digit.expand(64, -1, -1, -1)), crop_photos([photo] * 64, 32)
    colours = change_colours(photo[:, :, :30].expand(64, -1, -1, -1))
    assert digits.shape == (64, 1, 28, 28) and crops.shape == (64, 3, 32, 32) and crops.dtype == torch.uint8
    for changed, kinds in ((digits, GROUPS), (colours, 64)):
        assert changed.min() >= 0 and changed.max() <= 1
        assert len({image.numpy().tobytes() for image in changed}) == kinds
    assert len({image.numpy().tobytes() for image in crops}) > 36, "each photo has a crop of its own"


def test_a_digit_stays_in_its_frame():
    torch.manual_seed(0)
    digit = torch.zeros(400, 1, 28, 28, dtype=torch.uint8)
    digit[:, :, 4:24, 12:15] = 255  # a one, as tall as MNIST's
    changed = change_digits(digit)
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
    changed = crop_photos([photo] * 400, 24)[:, :2].float() / 255
    across = (changed[:, 0, 12, -3] - changed[:, 0, 12, 2]) / 4  # of the photo's width, in 19 of 24 pixels
    down = (changed[:, 1, -3, 12] - changed[:, 1, 2, 12]) / 8
    assert 0.4 < (across < 0).float().mean() < 0.6, "half of them are flipped"
    ratio = (across.abs() / down).log()
    squashed = (ratio - torch.tensor(2.0).log()).abs() < 0.15
    assert 0.05 < squashed.float().mean() < 0.2, "the whole photo"
    assert (ratio[~squashed].abs() < torch.tensor(4 / 3).log() + 0.2).float().mean() > 0.95


def test_a_batch_follows_from_its_seed_alone_also_in_another_process():
    photos = [torch.randint(0, 255, (3, 30, 40), dtype=torch.uint8) for _ in range(8)]
    batches = Batches(ImageDataset(photos, torch.arange(8), ()), 24)
    keys = [(step, torch.arange(8)) for step in (5, 6, 5)]
    here = [batches[key] for key in keys]
    torch.manual_seed(99)
    forked = DataLoader(batches, batch_size=None, sampler=keys, num_workers=2, multiprocessing_context="fork")
    for (images, labels), (expected, numbers) in zip(forked, here, strict=True):
        assert torch.equal(images, expected) and torch.equal(labels, numbers)
    assert torch.equal(here[0][0], here[2][0]) and not torch.equal(here[0][0], here[1][0])
    state = torch.get_rng_state()
    batches[keys[0]]
    assert torch.equal(torch.get_rng_state(), state), "nor does it change the random numbers of its process"
