"""Networks around a network: what enters it, what comes out, and which of that are the logits, as the caller has it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torchvision
from PIL import Image
from timm.data import create_transform
from torch import Tensor, nn
from torchvision.transforms import v2

import vit_demo
from vit_demo.errors import InputError
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from ..trace.networks import Own, own, timm_network

pytestmark = pytest.mark.filterwarnings("ignore")
CAT = Image.open(EXAMPLE_PHOTOS["cat"].path).convert("RGB")
NOISE = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(5))
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
M, S = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
NAMES = ["ant", "bee", "cat", "dog", "eel"]


def with_config() -> nn.Module:
    module = timm_network("vision_transformer.VisionTransformer")
    module.pretrained_cfg = {"input_size": (3, 32, 32), "mean": MEAN, "std": STD, "crop_pct": 0.9}
    return module


def without_config() -> nn.Module:
    module = own()
    module.image_size = 32
    return module


class Before(nn.Module):
    """A network whose ``forward`` changes its pixels first."""

    def __init__(self, change: Callable[[Tensor], Tensor], make: Callable[[], nn.Module] = with_config) -> None:
        super().__init__()
        self.inner, self.change = make(), change

    def forward(self, images: Tensor) -> Any:
        return self.inner(self.change(images))


def batch_norm() -> nn.Module:
    norm = nn.BatchNorm2d(3, eps=0, affine=False)
    norm.running_mean, norm.running_var = torch.tensor(MEAN), torch.tensor(STD) ** 2
    return norm.eval()


def in_place(x: Tensor) -> Tensor:
    x = x.clone()
    x.sub_(M).div_(S)
    return x


@torch.no_grad()
def without_gradients(x: Tensor) -> Tensor:
    return (x - M) / S


def by_convolution(x: Tensor) -> Tensor:
    return F.conv2d(x, 1 / S[:, None], -(M / S).flatten(), groups=3)


def by_colours(x: Tensor) -> Tensor:
    return F.conv2d(x, torch.diag(1 / S.flatten())[..., None, None], -(M / S).flatten())


def channels_last(x: Tensor) -> Tensor:
    return ((x.permute(0, 2, 3, 1) - torch.tensor(MEAN)) / torch.tensor(STD)).permute(0, 3, 1, 2)


class OnPatches(Own):
    """It normalises its patches after it has cut them out, and embeds them by a linear map."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.image_size = nn.Linear(192, 24), 32

    def forward(self, images: Tensor) -> Tensor:
        x = images.unflatten(3, (4, 8)).unflatten(2, (4, 8)).permute(0, 2, 4, 3, 5, 1)  # [B, 4, 4, 8, 8, C]
        x = self.stem(((x - 0.5) / 0.25).flatten(1, 2).flatten(2)) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def plain(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return lambda: Before(change)


SCALED: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "Normalize in a Sequential": (
        lambda: nn.Sequential(torchvision.transforms.Normalize(MEAN, STD), with_config()), 1,
    ),
    "Normalize before a network that says nothing": (
        lambda: nn.Sequential(v2.Normalize([0.5] * 3, [0.5] * 3), without_config()), 1,
    ),
    "another mean than its config's": (plain(lambda x: (x - 0.5) / 0.5), 1),
    "twice, less one": (plain(lambda x: x * 2 - 1), 1),
    "the mean alone": (plain(lambda x: x - 0.5), 1),
    "in place": (plain(in_place), 1),
    "without gradients": (plain(without_gradients), 1),
    "detached": (plain(lambda x: ((x - M) / S).detach()), 1),
    "batch normalization": (lambda: nn.Sequential(batch_norm(), with_config()), 1),
    "a convolution for each channel": (plain(by_convolution), 1),
    "a convolution of colours": (plain(by_colours), 1),
    "channels last": (plain(channels_last), 1),
    "picture by picture": (plain(lambda x: torch.stack([v2.functional.normalize(one, MEAN, STD) for one in x])), 1),
    "channel by channel": (plain(lambda x: torch.stack([(x[:, i] - MEAN[i]) / STD[i] for i in range(3)], 1)), 1),
    "clamped": (plain(lambda x: (x.clamp(0, 1) - M) / S), 1),
    "in double precision": (plain(lambda x: ((x.double() - M) / S).float()), 1),
    "blue first": (plain(lambda x: ((x - M) / S).flip(1)), 1),
    "torch.addcmul": (plain(lambda x: torch.addcmul(-M / S, x, 1 / S)), 1),
    "lerp": (plain(lambda x: torch.lerp(-torch.ones(3, 32, 32), torch.ones(3, 32, 32), x)), 1),
    "patches": (OnPatches, 1),
    "over 255": (plain(lambda x: (x / 255 - M) / S), 255),
    "over 255 and no more": (plain(lambda x: x / 255), 255),
    "over 127.5": (plain(lambda x: x / 127.5 - 1), 255),
    "mean and deviation of 255": (
        lambda: nn.Sequential(v2.Normalize([123.7, 116.3, 103.5], [58.4, 57.1, 57.4]), with_config()), 255,
    ),
    "Caffe's": (plain(lambda x: x.flip(1) - torch.tensor([104.0, 117.0, 123.0])[:, None, None]), 255),
    "DataParallel": (lambda: nn.DataParallel(nn.Sequential(v2.Normalize(MEAN, STD), with_config())), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALED)
def test_a_network_that_normalises_gets_the_pixels_that_its_own_code_gives_it(name):
    make, scale = SCALED[name]
    module = make().eval()
    has_config = any(hasattr(one, "pretrained_cfg") for one in module.modules())
    raw = create_transform(32, crop_pct=0.9 if has_config else 1, mean=(0,) * 3, std=(1,) * 3, interpolation="bicubic")
    with torch.no_grad():
        expected = module(scale * raw(CAT)[None])[0]
    ex = vit_demo.explore(CAT, module)
    np.testing.assert_allclose(ex.pixels[0] / scale, raw(CAT), atol=1e-5)
    np.testing.assert_allclose(ex.logits, expected, atol=2e-4)
    assert f"from 0 to {scale}" in ex.preprocessing.note and ex.preprocessing.std == pytest.approx((1 / scale,) * 3)
    assert "mean and standard deviation" not in ex.preprocessing.note
    given = vit_demo.explore(NOISE, module)  # a tensor is what it is
    with torch.no_grad():
        np.testing.assert_allclose(given.logits, module(NOISE[None])[0], atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [lambda x: x, lambda x: x.clone(), lambda x: F.dropout(x, 0.5, training=False), nn.BatchNorm2d(3).eval()],
    ids=["nothing", "a copy", "dropout", "fresh batch normalization"],
)
def test_a_network_that_changes_nothing_gets_normalised_pixels(change):
    module = Before(change).eval()
    normalised = create_transform(32, crop_pct=0.9, mean=MEAN, std=STD, interpolation="bicubic")(CAT)
    np.testing.assert_allclose(vit_demo.explore(CAT, module).pixels[0], normalised, atol=1e-5)


@pytest.mark.parametrize(
    "fold", [lambda: nn.PixelUnshuffle(8), lambda: nn.Sequential(nn.Unfold(8, stride=8), nn.Unflatten(2, (4, 4)))]
)
def test_patches_that_are_folded_into_channels_are_of_a_photo(fold):
    module = without_config().eval()
    module.stem = nn.Sequential(fold(), nn.Conv2d(192, 24, 1))
    x = create_transform(32, crop_pct=1, mean=MEAN, std=STD, interpolation="bicubic")(CAT)
    with torch.no_grad():
        expected = module(x[None])[0]
    np.testing.assert_allclose(vit_demo.explore(CAT, module).logits, expected, atol=1e-4)


def resized(side: int, **options: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: F.interpolate(F.interpolate(x, (side, side), **options), (32, 32), **options)


UNKNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "resize": resized(64, mode="bilinear"),
    "bicubic resize": resized(48, mode="bicubic", antialias=True),
    "resize and crop": v2.Compose([v2.Resize(40), v2.CenterCrop(32)]),
    "blur": v2.GaussianBlur(3, 0.8),
    "gamma": lambda x: x.abs() ** 0.45,
    "grey": v2.Grayscale(3),
    "grey by a convolution": lambda x: F.conv2d(x, torch.tensor([0.3, 0.6, 0.1])[None, :, None, None]).expand_as(x),
    "inverted": lambda x: 1 - x,
    "halved": lambda x: 0.5 * x,
    "each picture by itself": nn.InstanceNorm2d(3),
    "levels": lambda x: (x * 255).round() / 255,
    "crop": lambda x: F.interpolate(x[:, :, 4:-4, 4:-4], (32, 32), mode="bilinear"),
    "crop, to the next pixel": lambda x: F.interpolate(x[:, :, 4:-4, 4:-4], (32, 32)),
    "padding": lambda x: F.interpolate(F.pad(x, (8,) * 4), (32, 32), mode="bilinear"),
    "mirrored": lambda x: x.flip(3),
    "upside down": lambda x: x.flip(2),
    "turned": lambda x: x.rot90(1, (2, 3)),
    "rolled": lambda x: x.roll(8, 3),
    "a border of zeros": lambda x: F.pad(x[:, :, 8:-8, 8:-8], (8,) * 4),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_else_a_network_does_to_a_photo_is_refused(name):
    with pytest.raises(InputError, match="transform="):
        vit_demo.explore(CAT, Before(UNKNOWN[name]).eval())


@pytest.mark.parametrize("side", [32, 48])
def test_a_resize_and_crop_before_a_network_is_said(side):
    module = nn.Sequential(v2.Resize(40), v2.CenterCrop(32), with_config()).eval()
    module.image_size = side
    with pytest.raises(InputError, match=r"crop.*pass the network inside it, and transform="):
        vit_demo.explore(CAT, module)


def test_a_digit_for_a_network_that_normalises():
    module = Own()
    module.stem, module.place = nn.Conv2d(1, 24, 7, 7), nn.Parameter(torch.randn(1, 16, 24))
    module = nn.Sequential(v2.Normalize([0.1307], [0.3081]), module).eval()
    digit = np.zeros((28, 28), np.uint8)
    digit[4:24, 12:16] = 255
    with torch.no_grad():
        expected = module(torch.tensor(digit)[None, None] / 255)[0]
    digit = Image.fromarray(digit).convert("RGB")
    known = vit_demo.explore(digit, "digits-tiny").pixels * 0.3081 + 0.1307
    ex = vit_demo.explore(NOISE[:1, :28, :28], module)
    assert ex.preset.task == "digits"
    module[1].image_size = 28
    ex = vit_demo.explore(digit, module)
    np.testing.assert_allclose(ex.pixels, known, atol=1e-5)
    np.testing.assert_allclose(ex.logits, expected, atol=1e-4)
