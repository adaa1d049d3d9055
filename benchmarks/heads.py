"""What effects and contributions of heads cost, beside a plain loop with hooks that a person would write.

Of timm's ViT-B/16 or another network with random weights, one picture, in turns; every figure is a ratio from one run.

Example:
    $ python -m benchmarks heads --network vit_tiny_patch16_224 --repeats 3
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import timm
import torch
from torch import Tensor, nn

import vit_demo
from benchmarks.attention import machine

Hook = Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor]]


def silencing(start: int, end: int) -> Hook:
    """A hook that sets the part of one head to 0, in what an output projection gets."""

    def hook(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
        x = args[0].clone()
        x[..., start:end] = 0
        return (x,)

    return hook


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks heads", description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="vit_tiny_patch16_224", help="of timm (%(default)s)")
    parser.add_argument("--pixels", type=int, default=224, help="side of the picture (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="turns (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=16, help="passes at once (%(default)s)")
    options = parser.parse_args()
    print(machine())
    torch.manual_seed(0)
    network = timm.create_model(options.network, img_size=options.pixels).eval()
    size, blocks, heads = (3, options.pixels, options.pixels), len(network.blocks), network.blocks[0].attn.num_heads
    width = network.blocks[0].attn.proj.in_features // heads
    pixels = torch.randn(size)
    ex = vit_demo.explore(pixels, network)
    target, count = int(ex.logits.argmax()), blocks * heads

    @torch.no_grad()
    def plain() -> None:
        for start in range(0, count, options.batch_size):
            network(pixels.expand(min(options.batch_size, count - start), *size))

    @torch.no_grad()
    def loop() -> Tensor:
        lost, whole = torch.zeros(blocks, heads), network(pixels[None])[0, target]
        for block in range(blocks):
            for head in range(heads):
                hook = silencing(head * width, (head + 1) * width)
                handle = network.blocks[block].attn.proj.register_forward_pre_hook(hook)
                lost[block, head] = whole - network(pixels[None])[0, target]
                handle.remove()
        return lost

    @torch.no_grad()
    def alone() -> None:
        network(pixels[None])

    ways: dict[str, Callable[[], object]] = {
        "plain passes, in batches": plain,
        "head_effects": lambda: ex.head_effects(target, batch_size=options.batch_size),
        "a loop with hooks": loop,
        "one plain pass": alone,
        "contributions": lambda: ex.contributions(target),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in ways.values():
        run()
    for _ in range(options.repeats):
        for name, run in ways.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    difference = (torch.from_numpy(ex.head_effects(target)) - loop()).abs().max()
    print(f"{options.network}, {options.pixels} pixels, {blocks} x {heads} heads")
    print(f"effects differ by {difference:.1e} from those of the loop\n")
    print("| | of | times |", "|---|---|---:|", sep="\n")
    for name, other in (
        ("head_effects", "plain passes, in batches"),
        ("a loop with hooks", "plain passes, in batches"),
        ("contributions", "one plain pass"),
    ):
        ratios = [a / b for a, b in zip(seconds[name], seconds[other], strict=True)]
        print(f"| {name} | {other} | {statistics.median(ratios):.2f} |")


if __name__ == "__main__":
    main()
