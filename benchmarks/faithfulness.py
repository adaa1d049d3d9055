"""Which map can be believed: an open board of methods, networks and ways to remove patches.

Each method ranks the patches of a picture; they are then removed in that order (deletion), or returned to a picture
without any (insertion): painted grey, blurred, or dropped from the sequence. The networks are a pretrained ViT-Ti/16,
from a folder with ``vit_ti16_imagenet1k/vit_ti16_224.npz`` (timm's names) and ``imagenet_samples/images``, and two
bundled presets on their validation images. Every figure is written to a file at once, and a run goes on where the last
one ended; tables and plot are made of what is there.

Example:
    $ python -m benchmarks faithfulness --data PATH --store board.jsonl --count 200 --memory --docs docs
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Collection, Iterator
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from benchmarks.attention import peak
from benchmarks.board import Record, document, plot, table
from benchmarks.board_methods import maps
from recipes.datasets import load_split
from recipes.predictions import normalise
from vit_demo import load
from vit_demo.images import preprocess, read_image
from vit_demo.methods.subsets import subset_logits
from vit_demo.metrics import blur, faithfulness
from vit_demo.model import ViT
from vit_demo.model.config import VIT_TINY
from vit_demo.trace import OwnViT, TracedViT
from vit_demo.weights import find_preset

PRETRAINED = "vit-ti16"
NETWORKS = (PRETRAINED, "photos-tiny", "digits-small")
STEPS = 14


def quick() -> torch.autocast:
    """bfloat16 on the CPU: half the time, and probabilities that differ by less than 0.002."""
    return torch.autocast("cpu", torch.bfloat16)


def pretrained(folder: Path) -> TracedViT:
    """The ViT-Ti/16, in eval mode."""
    stored = np.load(folder / "vit_ti16_imagenet1k" / "vit_ti16_224.npz")
    model = ViT(VIT_TINY)
    model.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    return OwnViT(model.eval().requires_grad_(False))


def photos(folder: Path, count: int) -> Iterator[Tensor]:
    """The first photos of a fixed random order, as the network was evaluated: ``[1, 3, 224, 224]`` each."""
    paths = sorted((folder / "imagenet_samples" / "images").iterdir())
    half = (0.5, 0.5, 0.5)
    for index in np.random.RandomState(0).permutation(len(paths))[:count]:
        picture = read_image(Image.open(paths[index]))  # in this process, because the files are trusted
        yield preprocess(picture, image_size=224, patch_size=16, mean=half, std=half, crop_fraction=0.9)[0]


def network_and_images(name: str, folder: Path) -> tuple[TracedViT, Iterator[Tensor]]:
    """A network at its default patch size and pictures in a fixed order: photos, or 200 of its validation part."""
    if name == PRETRAINED:
        return pretrained(folder), photos(folder, 1000)
    preset = find_preset(name)
    model = OwnViT(load(name, patch_size=preset.default_patch_size, device="cpu").requires_grad_(False))
    images = load_split(preset, folder, "validation").evenly_spaced(200).images
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
    rank = values.flatten().argsort(descending=True, stable=True).argsort()
    counts = torch.linspace(1, len(rank) - 1, STEPS + 1).round()
    first = rank < counts[:, None]  # [steps + 1, n]
    curves = subset_logits(model, images, torch.cat([~first, first])).softmax(1)[:, target].reshape(2, -1)
    deletion, insertion = torch.trapezoid(curves, counts).tolist()
    return deletion / (len(rank) - 2), insertion / (len(rank) - 2)


def measure(name: str, folder: Path, count: int, methods: Collection[str], store: Path) -> None:
    """Adds what is missing of some methods on one network's first pictures to the store."""
    done = {(one["image"], one["method"]) for one in read(store) if one["network"] == name and "areas" in one}
    model, images = network_and_images(name, folder)
    for index, pixels in enumerate(tqdm(islice(images, count), total=count, desc=name, unit="image", mininterval=20)):
        missing = {method: maps()[method] for method in methods if (index, method) not in done}
        with torch.inference_mode(), quick():
            target = int(model(pixels).argmax()) if missing else 0
        for method, run in missing.items():
            started = time.process_time()
            with quick():
                values = run(model, pixels, target).float()
            seconds = time.process_time() - started
            with quick():
                found = areas(model, pixels, target, values)
            record = {"network": name, "image": index, "method": method, "seconds": seconds, "areas": found}
            append(store, record)


def measure_memory(folder: Path, methods: Collection[str], store: Path) -> None:
    """Adds what is missing of the methods' peaks of memory on the pretrained network; Linux only."""
    done = {one["method"] for one in read(store) if "megabytes" in one}
    missing = [method for method in methods if method not in done]
    # A process for each, because memory that another has freed is reused; forked before this one has used any.
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for method, megabytes in zip(missing, pool.imap(partial(peak_of, folder), missing), strict=True):
            append(store, {"network": PRETRAINED, "method": method, "megabytes": megabytes})


def peak_of(folder: Path, method: str) -> float:
    """By how much a method's peak of memory exceeds that of a plain pass, in megabytes."""
    model, images = network_and_images(PRETRAINED, folder)
    pixels = next(images)
    with quick():
        plain = peak(model, pixels)
        return max(0.0, peak(lambda one: maps()[method](model, one, 0), pixels) - plain)


def append(store: Path, record: Record) -> None:
    """Adds one line to the store."""
    with store.open("a") as file:
        file.write(json.dumps(record) + "\n")


def read(store: Path) -> list[Record]:
    """What was measured so far."""
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def main() -> None:
    """Reads the command line, measures, prints Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks faithfulness", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds weights and photos")
    parser.add_argument("--store", type=Path, default=Path("board.jsonl"), help="file of the figures (%(default)s)")
    parser.add_argument("--count", type=int, default=200, help="images of each network (%(default)s)")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS, help="(all)")
    parser.add_argument("--methods", nargs="+", choices=maps(), default=list(maps()), help="to be measured (all)")
    parser.add_argument("--memory", action="store_true", help="each method's peak of memory, too; Linux only")
    parser.add_argument("--docs", type=Path, help="folder for faithfulness.md, its plot and its CSV file")
    arguments = parser.parse_args()
    methods = dict.fromkeys(["random", *arguments.methods])  # which all others are compared with
    torch.set_num_threads(1)
    if arguments.memory:
        measure_memory(arguments.data, methods, arguments.store)
    for name in arguments.networks:
        measure(name, arguments.data, arguments.count, methods, arguments.store)
    records = read(arguments.store)
    text = document(records, arguments.networks)
    print(text)
    if arguments.docs:
        plot(records, arguments.networks, arguments.docs / "images" / "faithfulness.svg")
        (arguments.docs / "faithfulness.md").write_text(text)
        (arguments.docs / "faithfulness.csv").write_text(table(records, arguments.networks))


if __name__ == "__main__":
    main()
