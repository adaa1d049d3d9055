"""The tensor equals that of torchvision's pipeline, and the geometry gives the origin of every patch."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from vit_demo.errors import PresetError
from vit_demo.images import MNIST_MEAN, MNIST_STD, Geometry, digit_to_tensor, model_view, preprocess

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZES = [(64, 48), (33, 57), (200, 31), (20, 20), (131, 130), (7, 90)]


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def fit(image: Image.Image, **options) -> tuple[torch.Tensor, Geometry]:
    return preprocess(image, **{"image_size": 32, "patch_size": 8, "mean": MEAN, "std": STD, **options})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("crop_fraction", [1.0, 0.9, 0.875])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_crop_equals_torchvision(size: tuple[int, int], crop_fraction: float, interpolation: str):
    image = picture(*size)
    pipeline = transforms.Compose(
        [
            transforms.Resize(int(32 / crop_fraction), transforms.InterpolationMode(interpolation)),
            transforms.CenterCrop(32),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    tensor, geometry = fit(image, crop_fraction=crop_fraction, interpolation=interpolation)
    assert tensor.shape == (1, 3, 32, 32) and tensor.dtype == torch.float32
    assert geometry.input_size == (32, 32) and geometry.source_size == size
    torch.testing.assert_close(tensor[0], pipeline(image), atol=1e-6, rtol=0)


@pytest.mark.parametrize("size", [(600, 1), (1, 600)])
def test_a_very_narrow_picture_is_cropped_without_growing(size: tuple[int, int]):
    image = picture(*size)
    tensor, geometry = fit(image, mean=(0, 0, 0), std=(1, 1, 1))
    middle = image.resize((32 * size[0], 32 * size[1]), Image.Resampling.BICUBIC)
    left, top = (middle.width - 32) // 2, (middle.height - 32) // 2
    expected = np.asarray(middle.crop((left, top, left + 32, top + 32))) / 255
    np.testing.assert_allclose(tensor[0].permute(1, 2, 0), expected, atol=1.01 / 255)
    assert geometry.box == (left / 32, top / 32, left / 32 + 1, top / 32 + 1)


@pytest.mark.parametrize("size", SIZES)
def test_squash_equals_torchvision(size: tuple[int, int]):
    image = picture(*size)
    pipeline = transforms.Compose(
        [
            transforms.Resize((32, 32), transforms.InterpolationMode.BICUBIC),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    tensor, geometry = fit(image, mode="squash")
    assert geometry.box == (0, 0, *size)
    torch.testing.assert_close(tensor[0], pipeline(image), atol=1e-6, rtol=0)


def test_crop_sees_the_middle():
    _, geometry = fit(picture(64, 32))
    assert geometry.box == (16, 0, 48, 32)
    _, geometry = fit(picture(80, 40), crop_fraction=0.8)
    assert geometry.box == pytest.approx((24, 4, 56, 36))


@pytest.mark.parametrize("size", [*SIZES, (1, 2048), (2048, 1), (1, 1), (16, 9), (3, 2)])
@pytest.mark.parametrize(("image_size", "patch_size"), [(32, 8), (224, 16), (28, 7), (50, 16), (16, 16)])
def test_keep_makes_whole_patches_of_the_whole_picture(size: tuple[int, int], image_size: int, patch_size: int):
    tensor, geometry = fit(picture(*size), image_size=image_size, patch_size=patch_size, mode="keep")
    width, height = geometry.input_size
    assert tensor.shape == (1, 3, height, width)
    assert geometry.box == (0, 0, *size)
    cols, rows = width // patch_size, height // patch_size
    assert (cols * patch_size, rows * patch_size) == (width, height) and min(rows, cols) >= 1
    assert rows * cols <= (image_size // patch_size) ** 2


@pytest.mark.parametrize("aspect", [1.0, 4 / 3, 3 / 2, 16 / 9, 9 / 16, 2.0, 0.6])
def test_keep_stays_near_the_shape_and_the_area(aspect: float):
    _, geometry = fit(picture(round(300 * aspect), 300), image_size=224, patch_size=16, mode="keep")
    width, height = geometry.input_size
    assert width / height == pytest.approx(aspect, rel=0.06)
    assert width * height >= 0.8 * 224**2
    if aspect == 1:
        assert (width, height) == (224, 224)


@pytest.mark.parametrize("mode", ["crop", "squash", "keep"])
def test_model_view_is_the_part_the_model_saw(mode: str):
    image = picture(64, 48)
    tensor, geometry = fit(image, mode=mode, mean=(0, 0, 0), std=(1, 1, 1), interpolation="lanczos")
    width, height = geometry.input_size
    shown = model_view(image, geometry, max(width, height))
    assert shown.size == (width, height)
    np.testing.assert_allclose(np.asarray(shown) / 255, tensor[0].permute(1, 2, 0), atol=1.01 / 255)
    large = model_view(image, geometry, 300)
    assert max(large.size) == 300 and large.width / large.height == pytest.approx(width / height, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {"patch_size": 7},
        {"patch_size": 7, "mode": "squash"},
        {"patch_size": 0},
        {"patch_size": 64, "mode": "keep"},
        {"crop_fraction": 0.0},
        {"crop_fraction": 4.5},
        {"interpolation": "magic"},
        {"mode": "magic"},
    ],
)
def test_invalid_options_get_a_message(options: dict):
    with pytest.raises(PresetError) as caught:
        fit(picture(40, 30), **options)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_digit_tensor():
    digit = np.random.default_rng(0).integers(0, 256, (28, 28), dtype=np.uint8)
    tensor, geometry = digit_to_tensor(digit)
    assert tensor.shape == (1, 1, 28, 28) and tensor.dtype == torch.float32
    expected = [[(int(value) / 255 - MNIST_MEAN) / MNIST_STD for value in row] for row in digit]
    torch.testing.assert_close(tensor[0, 0], torch.tensor(expected), atol=1e-6, rtol=0)
    assert geometry.source_size == geometry.input_size == (28, 28) and geometry.box == (0, 0, 28, 28)
