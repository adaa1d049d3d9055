"""What the package costs one caller, beside plain loops of timm; every figure is a ratio from one run."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_model_data_config
from torch import Tensor

import vit_demo
from vit_demo.accelerator import device_name
from vit_demo.trace import adapter

CASES = ("attention", "rollout", "relevance", "libra_fullgrad", "attnlrp")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="benchmarks library", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of photos")
    parser.add_argument("--photos", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", type=torch.device, default="cpu", help="by torch's name, such as cuda")
    options = parser.parse_args()
    paths = sorted(
        path for path in options.data.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")
    )
    paths = paths[: options.photos]
    if not paths:
        sys.exit("There is no photo in this folder: give another one by --data.")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = options.device
    network = timm.create_model("vit_tiny_patch16_224").eval().to(device)
    transform = create_transform(**resolve_model_data_config(network), is_training=False)

    @torch.no_grad()
    def plain() -> None:
        for path in paths:
            network(transform(Image.open(path).convert("RGB"))[None].to(device))
        wait_for(device)

    def batches() -> None:
        for _ in vit_demo.explore_batch(paths, network):
            pass
        wait_for(device)

    print(
        f"torch {torch.__version__}, {device_name(device)}, one core, {len(paths)} photos, ViT-Ti/16, "
        f"ratios of medians of {options.repeats}"
    )
    plain_time, batch_time = alternate(options.repeats, plain, batches)
    print(f"explore_batch, in plain loops of timm (decode, transform, forward): {batch_time / plain_time:.2f}")

    image = transform(Image.open(paths[0]).convert("RGB"))
    one = image[None].to(device)
    pass_time, adoption_time = alternate(options.repeats, lambda: network(one), lambda: adopt(network))
    print(f"finding the structure of a network, once, in plain passes: {adoption_time / pass_time:.1f}")
    result = vit_demo.explore(image, network)

    def one_pass() -> None:
        network(image[None].to(device))
        wait_for(device)

    alone = {"a plain pass": once(one_pass, 9), "relevance": once(result.relevance, 9)}
    with get_context("spawn").Pool(2) as pool:
        busy = pool.map_async(_spin, [60.0] * 2)
        time.sleep(5)  # until both have started
        crowded = {"a plain pass": once(one_pass, 9), "relevance": once(result.relevance, 9)}
        pool.terminate()
        del busy
    print("while two other processes run: " + ", ".join(f"{name} {crowded[name] / alone[name]:.1f}" for name in alone))

    x = torch.stack([transform(Image.open(path).convert("RGB")) for path in paths[:32]]).to(device)
    explainer = vit_demo.Explainer(network)
    compare_batches(explainer, x)
    x = x.cpu()
    expected = [explainer(one).relevance() for one in x[:8]]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: vit_demo.explore(one, network).relevance(), x[:8]))
    worst = max(float(abs(a - b).max()) for a, b in zip(expected, found, strict=True))
    print(f"four threads, one module: largest difference of relevance from one thread {worst:.1e}")


def adopt(network: torch.nn.Module) -> None:
    """Finds the structure as of a network that was never seen."""
    adapter._found.pop(network, None)
    adapter.adapt(network, 224)


def compare_batches(explainer: vit_demo.Explainer, x: Tensor) -> None:
    """Prints, for every method of ``CASES``, what a batch costs beside its images one by one."""
    for method in CASES:

        def one_by_one(method: str = method) -> None:
            for one in x:
                explainer.maps(one[None], method)
            wait_for(x.device)

        def at_once(method: str = method) -> None:
            explainer.maps(x, method)
            wait_for(x.device)

        singles, together = alternate(3, one_by_one, at_once)
        print(f"{method}: a batch of {len(x)}, of as many single calls: {together / singles:.2f}")


def wait_for(device: torch.device) -> None:
    """Until an accelerator has done what was asked of it."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def once(work: Callable[[], object], repeats: int) -> float:
    """The median of the seconds of a piece of work."""
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def alternate(repeats: int, first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """The medians of two pieces of work, run by turns, so that what else the machine does meets both."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for work, kept in zip((first, second), times, strict=True):
            started = time.perf_counter()
            work()
            if turn:  # the first run warms up
                kept.append(time.perf_counter() - started)
    return statistics.median(times[0]), statistics.median(times[1])


def _spin(seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        torch.randn(200, 200, dtype=torch.float32).mm(torch.randn(200, 200, dtype=torch.float32))


if __name__ == "__main__":
    main()
