"""What a caller's transform does to colours is measured: the picture under a map, and what black is, are its own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as T
from PIL import Image
from torch import Tensor, nn

import vit_demo
from tests.trace.networks import own
from vit_demo.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")
PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (4, 4, 3), np.uint8)).resize((32, 32), 0)


def normalize(mean: list[float], std: list[float]) -> Callable[[Image.Image], Tensor]:
    return T.Compose([T.Resize((32, 32)), T.ToTensor(), T.Normalize(mean, std)])


def processor(**options: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.ViTImageProcessor(size={"height": 32, "width": 32}, **options)


def of_255(picture: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(picture.resize((32, 32), 0))).permute(2, 0, 1).float()


def with_bars(picture: Image.Image) -> Tensor:
    return T.functional.pad(normalize([0.3] * 3, [0.6] * 3)(picture)[:, 4:28], [0, 4])


TRANSFORMS: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "its own mean and deviation": (lambda: normalize([0.1, 0.5, 0.9], [0.2, 0.3, 0.4]), [-0.5, -5 / 3, -2.25]),
    "from -1 to 1": (lambda: normalize([0.5] * 3, [0.5] * 3), [-1.0] * 3),
    "inverted": (lambda: normalize([0.5] * 3, [-0.5] * 3), [1.0] * 3),
    "from 0 to 255": (lambda: of_255, [0.0] * 3),
    "a processor of transformers": (
        lambda: processor(image_mean=[0.2, 0.4, 0.6], image_std=[0.5, 0.25, 1.0]), [-0.4, -1.6, -0.6]
    ),
    "blue, green, red": (
        lambda: lambda picture: of_255(picture).flip(0) - torch.tensor([104.0, 117, 123])[:, None, None],
        [-104.0, -117, -123],
    ),
    "green, red, blue": (
        lambda: lambda picture: normalize([0.5, 0.2, 0.1], [0.5] * 3)(picture)[[1, 0, 2]], [-0.4, -1.0, -0.2]
    ),
    "bars above and below": (lambda: with_bars, [-0.5] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_black_and_the_picture_are_those_of_the_transform(name):
    make, black = TRANSFORMS[name]
    module, transform = own(), make()
    ex = vit_demo.explore(PICTURE, module, transform=transform)
    shown = np.asarray(ex.image.resize((32, 32), 0), np.float32)[8:24]
    np.testing.assert_allclose(shown, np.asarray(PICTURE.resize((32, 32), 0), np.float32)[8:24], atol=2)
    values = torch.arange(16.0).reshape(4, 4)
    found = ex.faithfulness(values.numpy(), baseline="black", label=3, seeds=0)
    replaced = torch.tensor(black)[None, :, None, None].expand(1, 3, 32, 32)
    with torch.no_grad():
        ends = module(torch.cat([ex.pixels, replaced]))
    ends = ends[:, 3] if found.measured == "logit" else ends.softmax(1)[:, 3]
    np.testing.assert_allclose(found.deletion[[0, -1]], ends, atol=1e-4)
    assert ex.preprocessing.mean == pytest.approx([-b * s for b, s in zip(black, ex.preset.std, strict=True)], abs=1e-4)


def test_so_of_a_single_channel():
    class Grey(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = own()
            self.inside.stem = nn.Conv2d(1, 24, 8, 8)

        def forward(self, images: Tensor) -> Tensor:
            return self.inside(images)

    transform = T.Compose([T.Grayscale(), T.Resize((32, 32)), T.ToTensor(), T.Normalize([0.25], [0.5])])
    ex = vit_demo.explore(PICTURE, Grey().eval(), transform=transform)
    shown = np.asarray(ex.image.resize((32, 32), 0), np.float32)
    np.testing.assert_allclose(shown[..., 0], np.asarray(PICTURE.convert("L").resize((32, 32), 0)), atol=2)
    assert ex.faithfulness("relevance", baseline="black", seeds=0).deletion.shape
    assert ex.preset.mean == pytest.approx([0.25], abs=1e-4) and ex.preset.std == pytest.approx([0.5], abs=1e-4)


def test_what_is_no_line_is_shown_from_its_darkest_to_its_lightest():
    def of_itself(picture: Image.Image) -> Tensor:
        x = of_255(picture)
        return (x - x.mean()) / x.std()

    ex = vit_demo.explore(PICTURE, own(), transform=of_itself)
    assert (np.asarray(ex.image).min(), np.asarray(ex.image).max()) == (0, 255)
    assert "which number is black is assumed" in ex.preprocessing.note
    bright = vit_demo.explore(PICTURE, own(), transform=lambda picture: (of_255(picture) / 255) ** 2.2)
    assert "which number is black is assumed" in bright.preprocessing.note


def test_what_cannot_be_called_is_no_transform():
    with pytest.raises(InputError, match="transform= is a function"):
        vit_demo.Explainer(own(), transform=5)


def test_colours_are_measured_once():
    calls = []
    explainer = vit_demo.Explainer(own(), transform=lambda picture: calls.append(1) or of_255(picture))
    for _ in range(3):
        explainer(PICTURE)
    assert len(calls) == 3 + 6
