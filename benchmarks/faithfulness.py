"""Which map can be believed: deletion and insertion areas of every method, beside chance.

Of a pretrained ViT-Ti/16, from a folder that holds ``vit_ti16_imagenet1k/vit_ti16_224.npz`` (timm's names) and
``imagenet_samples/images``; or of a bundled preset, on images of its validation part.

Example:
    $ python -m benchmarks.faithfulness --data PATH --json figures.json
    $ python -m benchmarks.faithfulness --data PATH --preset digits-small
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from benchmarks.attention import machine
from vit_demo import load
from vit_demo.images import preprocess, read_image
from vit_demo.methods import METHODS, relevance
from vit_demo.metrics import faithfulness
from vit_demo.model import ViT
from vit_demo.model.config import VIT_TINY
from vit_demo.training.predictions import normalise
from vit_demo.training.run import evenly_spaced_subset, load_split
from vit_demo.weights import find_preset

Map = Callable[[ViT, Tensor, int], Tensor]
"""(model, image ``[1, 3, 224, 224]``, class) -> ``[rows, cols]``."""

BASELINE = torch.zeros(1)
"""Grey: the colour that normalisation takes off."""


def quick() -> torch.autocast:
    """bfloat16 on the CPU: half the time, and probabilities that differ by less than 0.002."""
    return torch.autocast("cpu", torch.bfloat16)


@dataclass(frozen=True)
class Line:
    """One method over some images; intervals are of 95 %."""

    method: str
    images: int
    deletion: float
    deletion_interval: float
    insertion: float
    insertion_interval: float


def pretrained(folder: Path) -> ViT:
    """The ViT-Ti/16, in eval mode."""
    stored = np.load(folder / "vit_ti16_imagenet1k" / "vit_ti16_224.npz")
    model = ViT(VIT_TINY)
    model.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    return model.eval().requires_grad_(False)


def photos(folder: Path, count: int) -> Iterator[Tensor]:
    """The first photos of a fixed random order, as the network was evaluated: ``[1, 3, 224, 224]`` each."""
    paths = sorted((folder / "imagenet_samples" / "images").iterdir())
    half = (0.5, 0.5, 0.5)
    for index in np.random.RandomState(0).permutation(len(paths))[:count]:
        picture = read_image(paths[index])
        yield preprocess(picture, image_size=224, patch_size=16, mean=half, std=half, crop_fraction=0.9)[0]


def bundled(name: str, folder: Path, count: int) -> tuple[ViT, Iterator[Tensor]]:
    """A bundled preset at its default patch size, and images evenly spread over its validation part."""
    preset = find_preset(name)
    model = load(name, preset.default_patch_size, "cpu").requires_grad_(False)
    images = evenly_spaced_subset(load_split(preset, folder, "validation"), count).images
    return model, iter(normalise(images.float() / 255, preset).split(1))


def maps() -> dict[str, Map]:
    """Every method with its defaults, one variant that is worth a line, and Grad-CAM where it is installed."""

    def ours(compute: Callable[..., Tensor]) -> Map:
        def run(model: ViT, images: Tensor, target: int) -> Tensor:
            with quick():
                return compute(model, images, target)[0]

        return run

    found = {name: ours(method.compute) for name, method in METHODS.items()}
    found["relevance, heads averaged first"] = ours(partial(relevance, average_heads_first=True))
    if find_spec("pytorch_grad_cam"):
        found["Grad-CAM (pytorch-grad-cam)"] = grad_cam
    return found


def grad_cam(model: ViT, images: Tensor, target: int) -> Tensor:
    """Grad-CAM at the last block's first norm, as that library's ViT example has it."""
    from pytorch_grad_cam import GradCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    p = model.patch_size

    def on_grid(tokens: Tensor) -> Tensor:
        return tokens[:, model.config.num_prefix_tokens :].unflatten(1, (-1, images.shape[3] // p)).permute(0, 3, 1, 2)

    model.requires_grad_(True)
    try:
        with GradCAM(model, [model.blocks[-1].norm1], reshape_transform=on_grid) as cam:
            pixels = cam(images.clone(), [ClassifierOutputTarget(target)])  # [1, height, width]
    finally:
        model.requires_grad_(False)
    return F.avg_pool2d(torch.from_numpy(pixels), p)[0]


def measure(model: ViT, images: Iterator[Tensor], count: int, steps: int) -> dict[str, list[tuple[float, float]]]:
    """Deletion and insertion areas of every method on every image, for the class that the model predicts."""
    methods = maps()
    areas: dict[str, list[tuple[float, float]]] = {"random order": [], **{name: [] for name in methods}}
    for pixels in tqdm(images, total=count, unit="image", mininterval=20):
        with torch.inference_mode(), quick():
            target = int(model(pixels).argmax())
        for name, method in methods.items():
            values = method(model, pixels, target)
            first = name == next(iter(methods))  # chance is the same beside every method
            with quick():
                found = faithfulness(model, pixels, target, values, BASELINE, steps=steps, seeds=3 if first else 0)
            areas[name].append((found.deletion_area, found.insertion_area))
            if first:
                areas["random order"].append((found.random_deletion_area, found.random_insertion_area))
    return areas


def line(method: str, areas: list[tuple[float, float]]) -> Line:
    """A method's means over some images."""
    pairs = np.array(areas)
    deletion, insertion = pairs.mean(0)
    half = 1.96 * pairs.std(0, ddof=min(1, len(pairs) - 1)) / len(pairs) ** 0.5
    return Line(method, len(pairs), float(deletion), float(half[0]), float(insertion), float(half[1]))


def table(lines: list[Line]) -> str:
    """The result as Markdown."""
    rows = [
        f"| {lines[0].images} images | deletion, lower is better | insertion, higher is better |",
        "|---|---:|---:|",
    ]
    rows += [
        f"| {one.method} | {one.deletion:.3f} ± {one.deletion_interval:.3f} "
        f"| {one.insertion:.3f} ± {one.insertion_interval:.3f} |"
        for one in lines
    ]
    return "\n".join(rows)


def main() -> None:
    """Reads the command line, measures, prints Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faithfulness", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds weights and photos")
    parser.add_argument("--preset", help="a bundled preset on its validation images, instead of the ViT-Ti/16")
    parser.add_argument("--count", type=int, default=200, help="images (%(default)s)")
    parser.add_argument("--first", type=int, help="a second table, of so many of the images")
    parser.add_argument("--steps", type=int, default=14, help="of each curve (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    facts = machine()
    print(facts)
    if arguments.preset:
        model, images = bundled(arguments.preset, arguments.data, arguments.count)
    else:
        model, images = pretrained(arguments.data), photos(arguments.data, arguments.count)
    areas = measure(model, images, arguments.count, arguments.steps)
    counts = [arguments.count, *([arguments.first] if arguments.first else [])]
    lines = [line(method, pairs[:count]) for count in counts for method, pairs in areas.items()]
    for count in counts:
        print(f"\n{table([one for one in lines if one.images == count])}")
    if arguments.json:
        figures = {"machine": facts, "steps": arguments.steps, "results": [asdict(one) for one in lines]}
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
