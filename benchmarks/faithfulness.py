"""Which map can be believed: an open board of methods, networks and ways to remove patches.

Each method ranks the patches of a picture; they are then removed in that order (deletion), or returned to a picture
without any (insertion): painted grey, blurred, or dropped from the sequence. The networks are a pretrained ViT-Ti/16,
from a folder with ``vit_ti16_imagenet1k/vit_ti16_224.npz`` (timm's names) and ``imagenet_samples/images``, and two
bundled presets on their validation images. Every figure is written to a file at once, and a run goes on where the last
one ended; tables and plot are made of what is there.

Example:
    $ python -m benchmarks.faithfulness --data PATH --store board.jsonl --count 200 --docs docs
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.attention import machine
from benchmarks.board_methods import maps
from vit_demo import load
from vit_demo.images import preprocess, read_image
from vit_demo.methods.subsets import subset_logits
from vit_demo.metrics import blur, faithfulness
from vit_demo.model import ViT
from vit_demo.model.config import VIT_TINY
from vit_demo.trace import TracedViT
from vit_demo.training.predictions import normalise
from vit_demo.training.run import evenly_spaced_subset, load_split
from vit_demo.weights import find_preset

PRETRAINED = "vit-ti16"
NETWORKS = (PRETRAINED, "photos-tiny", "digits-small")
REMOVALS = ("grey", "blur", "dropped")
STEPS = 14

Record = dict[str, Any]
"""Of one method on one picture: ``network``, ``image``, ``method``, ``seconds``, ``areas``: removal -> (deletion,
insertion)."""


def quick() -> torch.autocast:
    """bfloat16 on the CPU: half the time, and probabilities that differ by less than 0.002."""
    return torch.autocast("cpu", torch.bfloat16)


def pretrained(folder: Path) -> TracedViT:
    """The ViT-Ti/16, in eval mode."""
    stored = np.load(folder / "vit_ti16_imagenet1k" / "vit_ti16_224.npz")
    model = ViT(VIT_TINY)
    model.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    return TracedViT.of(model.eval().requires_grad_(False))


def photos(folder: Path, count: int) -> Iterator[Tensor]:
    """The first photos of a fixed random order, as the network was evaluated: ``[1, 3, 224, 224]`` each."""
    paths = sorted((folder / "imagenet_samples" / "images").iterdir())
    half = (0.5, 0.5, 0.5)
    for index in np.random.RandomState(0).permutation(len(paths))[:count]:
        picture = read_image(paths[index])
        yield preprocess(picture, image_size=224, patch_size=16, mean=half, std=half, crop_fraction=0.9)[0]


def network_and_images(name: str, folder: Path) -> tuple[TracedViT, Iterator[Tensor]]:
    """A network at its default patch size and pictures in a fixed order: photos, or 200 of its validation part."""
    if name == PRETRAINED:
        return pretrained(folder), photos(folder, 1000)
    preset = find_preset(name)
    model = load(name, preset.default_patch_size, "cpu").requires_grad_(False)
    images = evenly_spaced_subset(load_split(preset, folder, "validation"), 200).images
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    return model, iter(normalise(images[order].float() / 255, preset).split(1))


def areas(model: TracedViT, images: Tensor, target: int, values: Tensor) -> dict[str, tuple[float, float]]:
    """Deletion and insertion of a map for each way to remove patches."""
    found = {}
    for name, baseline in (("grey", torch.zeros(1)), ("blur", blur(images, 4 * model.patch_size))):
        curves = faithfulness(model, images, target, values, baseline, steps=STEPS, seeds=0)
        found[name] = (curves.deletion_area, curves.insertion_area)
    found["dropped"] = dropped_areas(model, images, target, values)
    return found


def dropped_areas(model: TracedViT, images: Tensor, target: int, values: Tensor) -> tuple[float, float]:
    """Deletion and insertion where patches leave the sequence; one of them always stays."""
    order = values.flatten().argsort(descending=True, stable=True)
    n = len(order)
    counts = torch.linspace(1, n - 1, STEPS + 1).round().long().tolist()
    curves = [
        [float(subset_logits(model, images, kept.sort().values[None]).softmax(1)[0, target]) for kept in subsets]
        for subsets in ([order[count:] for count in counts], [order[:count] for count in counts])
    ]
    deletion, insertion = (float(np.trapezoid(curve, counts)) / (n - 2) for curve in curves)
    return deletion, insertion


def measure(name: str, folder: Path, count: int, store: Path) -> None:
    """Adds what is missing of one network's first pictures to the store."""
    done = {(one["image"], one["method"]) for one in read(store) if one["network"] == name}
    model, images = network_and_images(name, folder)
    for index, pixels in enumerate(tqdm(islice(images, count), total=count, desc=name, unit="image", mininterval=20)):
        missing = {method: run for method, run in maps().items() if (index, method) not in done}
        with torch.inference_mode(), quick():
            target = int(model(pixels).argmax()) if missing else 0
        for method, run in missing.items():
            started = time.perf_counter()
            with quick():
                values = run(model, pixels, target).float()
            seconds = time.perf_counter() - started
            with quick():
                found = areas(model, pixels, target, values)
            record = {"network": name, "image": index, "method": method, "seconds": seconds, "areas": found}
            with store.open("a") as file:
                file.write(json.dumps(record) + "\n")


def read(store: Path) -> list[Record]:
    """What was measured so far."""
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def pairs(records: list[Record], network: str, count: int) -> dict[str, np.ndarray]:
    """Deletion and insertion ``[images, removals, 2]`` of each method, on the pictures that all methods have."""
    found: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for one in records:
        if one["network"] == network and one["image"] < count:
            found.setdefault(one["method"], {})[one["image"]] = [one["areas"][removal] for removal in REMOVALS]
    if not found:
        return {}
    common = sorted(set[int].intersection(*(set(images) for images in found.values())))
    return {method: np.array([images[i] for i in common]) for method, images in found.items()} if common else {}


def gains(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of insertion minus deletion for each removal, and half of its 95 % interval."""
    difference = values[..., 1] - values[..., 0]  # [images, removals]
    spread = difference.std(0, ddof=min(1, len(difference) - 1))
    return difference.mean(0), 1.96 * spread / len(difference) ** 0.5


def table(records: list[Record], network: str, count: int) -> str:
    """One network's figures as Markdown, the best method first; a star marks what is no better than chance."""
    found = pairs(records, network, count)
    if not found:
        return ""
    seconds = {
        method: np.median([one["seconds"] for one in records if (one["network"], one["method"]) == (network, method)])
        for method in found
    }
    header = " | ".join(f"{removal}: deletion / insertion | difference" for removal in REMOVALS)
    rows = [f"| `{network}`, {len(next(iter(found.values())))} images | {header} | seconds |", "|---" * 8 + "|"]
    for method, values in sorted(found.items(), key=lambda item: -gains(item[1])[0].mean()):
        mean, half = gains(values)
        _, chance = gains(values - found["random"])
        above = mean - gains(found["random"])[0]
        cells = [
            f"{deletion:.3f} / {insertion:.3f} | {gain:.3f} ± {width:.3f}{'' if better else ' *'}"
            for (deletion, insertion), gain, width, better in zip(
                values.mean(0), mean, half, above > chance, strict=True
            )
        ]
        rows.append(f"| {method} | {' | '.join(cells)} | {seconds[method]:.2f} |")
    return "\n".join(rows)


def plot(records: list[Record], networks: tuple[str, ...], count: int, path: Path) -> None:
    """Insertion minus deletion of every method, one panel a network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    panels = figure.subplots(1, len(networks), sharex=True, squeeze=False)[0]
    for panel, network in zip(panels, networks, strict=True):
        found = sorted(pairs(records, network, count).items(), key=lambda item: gains(item[1])[0].mean())
        for offset, removal in enumerate(REMOVALS):
            place = np.arange(len(found)) + 0.25 * (1 - offset)
            means, halves = zip(*(gains(values) for _, values in found), strict=True)
            panel.errorbar(
                [mean[offset] for mean in means], place, xerr=[half[offset] for half in halves], fmt="o",
                markersize=3, label=removal,
            )  # fmt: skip
        panel.set_yticks(range(len(found)), [method for method, _ in found])
        panel.set_title(network)
        panel.axvline(0, color="grey", linewidth=0.5)
        panel.set_xlabel("insertion − deletion")
    panels[0].legend(loc="lower right")
    figure.savefig(path)


def main() -> None:
    """Reads the command line, measures, prints Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faithfulness", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds weights and photos")
    parser.add_argument("--store", type=Path, default=Path("board.jsonl"), help="file of the figures (%(default)s)")
    parser.add_argument("--count", type=int, default=200, help="images of each network (%(default)s)")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS, help="(all)")
    parser.add_argument("--docs", type=Path, help="folder into which faithfulness.md and its plot are written")
    arguments = parser.parse_args()
    for name in arguments.networks:
        measure(name, arguments.data, arguments.count, arguments.store)
    records = read(arguments.store)
    tables = "\n\n".join(table(records, name, arguments.count) for name in arguments.networks)
    print(machine(), tables, sep="\n\n")
    if arguments.docs:
        plot(records, tuple(arguments.networks), arguments.count, arguments.docs / "images" / "faithfulness.svg")
        (arguments.docs / "faithfulness.md").write_text(f"{HEAD}\n{tables}\n")


HEAD = """# The board of faithfulness

Made by `python -m benchmarks.faithfulness --data PATH --docs docs`. Deletion (lower is better), insertion (higher is
better) and their difference with its 95 % interval over the images, for three ways to remove patches: painted grey,
blurred, or dropped from the sequence. The best method of each network comes first. A star marks a difference that is
not above that of a random order by more than its interval. `edges` is a sham: where the picture has edges, whatever the
network says. Seconds are medians on the machine that made the tables, beside other work.
[Explanations](explanations.md) describes the methods.

![Insertion minus deletion of every method](images/faithfulness.svg)
"""


if __name__ == "__main__":
    main()
