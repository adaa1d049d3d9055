"""Data augmentation with torchvision's transforms."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms import v2

GROUP = 4
"""Number of images that share random parameters: a transform draws them once a call, and calls cost time."""


def vary_strokes(images: Tensor) -> Tensor:
    """Makes the strokes of digits ``[B, 1, 28, 28]`` in [0, 1] thicker or thinner, at full intensity."""
    amount = torch.empty(()).uniform_(-0.6, 1.0)
    thicker, thinner = F.max_pool2d(images, 3, 1, 1), -F.max_pool2d(-images, 3, 1, 1)
    images = torch.lerp(images, thicker if amount > 0 else thinner, amount.abs())
    return images / images.amax((1, 2, 3), keepdim=True).clamp(min=0.3)


DIGIT_TRANSFORM = v2.Compose(
    [
        v2.RandomAffine(degrees=13, translate=(0.06, 0.06), scale=(0.9, 1.5), shear=(-17, 17)),
        v2.RandomPerspective(distortion_scale=0.4, p=1.0),  # stretches digits, too
        v2.RandomApply([v2.ElasticTransform(alpha=30.0, sigma=4.0)], p=0.5),
        v2.Lambda(vary_strokes),
        v2.RandomChoice([v2.Identity(), v2.GaussianBlur(3, (0.3, 1.0)), v2.RandomAdjustSharpness(2.0, p=1.0)]),
    ]
)

COLOUR_TRANSFORM = v2.Compose(
    [
        v2.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.6),
        v2.RandomChoice([v2.Identity(), v2.GaussianBlur(5, (0.5, 2.0)), v2.RandomAdjustSharpness(2.0, p=1.0)]),
    ]
)


def augment_digits(images: Tensor) -> Tensor:
    """Turns, shears, stretches and bends digits uint8 ``[B, 1, 28, 28]``; the same shape, in [0, 1]."""
    return _transform_groups(images, DIGIT_TRANSFORM)


def augment_photos(images: list[Tensor], side: int) -> Tensor:
    """Crops photos uint8 ``[3, height, width]`` at random and changes their colours: ``[B, 3, side, side]`` in [0, 1].

    Most crops cover 20 to 100 % of the area. One in seven is the central square, as the page crops it, and one in ten
    the whole photo, squashed. Half of them are flipped.
    """
    centre = v2.Compose([v2.Resize(side), v2.CenterCrop(side)])
    crops = [v2.RandomResizedCrop(side, scale=(0.2, 1.0)), centre, v2.Resize((side, side))]
    crop = v2.Compose([v2.RandomChoice(crops, p=[0.75, 0.15, 0.1]), v2.RandomHorizontalFlip()])
    return _transform_groups(torch.stack([crop(image) for image in images]), COLOUR_TRANSFORM)


def _transform_groups(images: Tensor, transform: v2.Transform) -> Tensor:
    return torch.cat([transform(group) for group in (images.float() / 255).split(GROUP)]).clamp(0, 1)
