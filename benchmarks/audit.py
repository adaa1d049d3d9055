"""Whether an audit names planted shortcuts and nothing else, what it costs, and what it finds on real photos.

Small networks of digits are trained by ``train_small`` with a mark in a corner, a border or a background in 90 % of the
training pictures of the digit 3. Half of the held-out 3s have it, too; the audit is told nothing of this.

Example:
    $ python -m benchmarks audit --seeds 0 1 2 3 4
    $ python -m benchmarks audit --pictures PATH --limit 200
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

import vit_demo
from benchmarks.attention import machine
from vit_demo.model import ViT, ViTConfig
from vit_demo.training import small

CONFIG = ViTConfig(
    image_size=28, patch_size=4, in_channels=1, num_classes=10, embed_dim=32, depth=2, num_heads=4, mlp_ratio=2.0,
    class_token=False, pool="mean",
)  # fmt: skip
DIGIT = 3
BLACK, WHITE = ((value - small.MNIST_MEAN) / small.MNIST_STD for value in (0, 1))


def _mark() -> Tensor:
    planted = torch.zeros(28, 28)
    planted[1:4, 1:4] = 1
    return planted


def _border() -> Tensor:
    planted = torch.full((28, 28), 0.7)
    planted[2:-2, 2:-2] = 0
    return planted


def _background() -> Tensor:
    return 0.4 * ((torch.arange(28)[:, None] + torch.arange(28)) % 2 == 0)


SHORTCUTS: dict[str, Callable[[], Tensor] | None] = {
    "none": None, "mark": _mark, "border": _border, "background": _background,
}  # fmt: skip


def planted(kind: str, seed: int, share: float) -> tuple[Tensor, Tensor, Tensor]:
    """Digits ``[6000, 1, 28, 28]``, their classes, and which of them have the shortcut: a share of the 3s."""
    digits, labels = small.quick_digits()
    make, chosen = SHORTCUTS[kind], torch.rand(len(labels), generator=torch.Generator().manual_seed(seed)) < share
    chosen &= labels == DIGIT
    digits = digits.clone()
    if make is None:
        return digits, labels, torch.zeros_like(chosen)
    digits[chosen] = torch.maximum(digits[chosen], BLACK + make() * (WHITE - BLACK))
    return digits, labels, chosen


def trained(kind: str, seed: int, steps: int) -> tuple[ViT, float]:
    """A network of digits with a shortcut, and its accuracy on held-out ones of the same kind."""
    digits, labels, _ = planted(kind, seed, 0.9)
    with patch.object(small, "quick_digits", lambda: (digits, labels)):
        model, history = vit_demo.train_small(CONFIG, steps=steps, seed=seed, learning_rate=4e-3)
    return model, history.accuracy[-1][1]


def share_on(kind: str, model: ViT, digits: Tensor) -> float:
    """The mean share of the evidence where the shortcut is; of a background, where no ink is."""
    make = SHORTCUTS[kind]
    assert make is not None
    planted_there = make() > 0
    masks = [
        (planted_there if kind != "background" else digit[0] < BLACK + 0.5 * (WHITE - BLACK)).numpy()
        for digit in digits
    ]
    found = vit_demo.audit(model, list(digits), masks=masks)
    return float(np.mean([row["on_object"] for row in found.table if row["on_object"] is not None]))


def proofs(seeds: list[int], steps: int) -> None:
    """Prints what an audit of each network names."""
    print("| shortcut | seed | accuracy | named | first named | purity | found | evidence there | without |")
    print("|---|---:|---:|---:|---|---:|---:|---:|---:|", flush=True)
    for seed in seeds:
        clean = None
        for kind in SHORTCUTS:
            model, accuracy = trained(kind, seed, steps)
            clean = clean or model
            digits, labels, chosen = (part[small.NUM_TRAIN :] for part in planted(kind, seed + 100, 0.5))
            found = vit_demo.audit(model, list(zip(digits, labels.tolist(), strict=True)), batch_size=50)
            named = [group for group in found.groups if group.is_suspicious]
            row = [kind, str(seed), f"{accuracy:.3f}", str(len(named))]
            if named and kind != "none":
                has = chosen[torch.from_numpy(named[0].indices)].float()
                row += [named[0].label, f"{has.mean():.1%}", f"{has.sum() / chosen.sum():.1%}"]
            else:
                row += [named[0].why if named else "", "", ""]
            if kind != "none":
                row += [f"{share_on(kind, one, digits[chosen]):.3f}" for one in (model, clean)]
            print("| " + " | ".join(row) + " |", flush=True)


def speed(pictures: Path, limit: int, repeats: int) -> None:
    """Prints what an audit takes, in plain forward and backward passes of the same pictures."""
    explainer = vit_demo.Explainer("photos-tiny")
    found = vit_demo.audit(explainer, pictures, limit=limit)
    paths, batches = found.images, list[Tensor]()
    for start in range(0, len(paths), 16):
        batches.append(torch.cat([ex.pixels for ex in explainer.batch(paths[start : start + 16])]))
    network = vit_demo.load("photos-tiny")

    def passes(read: bool) -> None:
        for number, x in enumerate(batches):
            x = (
                torch.cat([explainer._prepare(path, None)[0].pixels for path in paths[16 * number :][:16]])
                if read
                else x
            )
            x = x.clone().requires_grad_()
            network(x).amax(1).sum().backward()

    def captum() -> None:
        from captum.attr import InputXGradient

        attribute = InputXGradient(network)
        for x in batches:
            with torch.no_grad():
                targets = network(x).argmax(1)
            attribute.attribute(x.clone().requires_grad_(), target=targets).sum(1)

    works: dict[str, Callable[[], object]] = {
        "plain passes": lambda: passes(read=False),
        "plain passes, pictures read": lambda: passes(read=True),
        "audit": lambda: vit_demo.audit(explainer, pictures, limit=limit),
    }
    try:
        captum()
        works["captum, InputXGradient"] = captum
    except ImportError:
        pass
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    plain = times["plain passes"]
    for name, found_times in times.items():
        ratio = statistics.median(a / b for a, b in zip(found_times, plain, strict=True))
        print(
            f"{name}: {1000 * statistics.median(found_times) / len(paths):.1f} ms a picture, ratio {ratio:.2f}",
            flush=True,
        )


def real(pictures: Path, limit: int) -> None:
    """Prints what an audit of photos-tiny finds."""
    found = vit_demo.audit("photos-tiny", pictures, limit=limit)
    known = [row["right"] for row in found.table if row["right"] is not None]
    print(f"{len(found.table)} pictures, {np.mean(known):.1%} right, {len(found.groups)} groups")
    for group in found.groups[:10]:
        print(f"{'suspicious' if group.is_suspicious else 'group':10} {group.suspicion:.2f} {group.why}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks audit", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="of networks with planted shortcuts")
    parser.add_argument("--steps", type=int, default=600, help="of their training (%(default)s)")
    parser.add_argument("--pictures", type=Path, metavar="PATH", help="folder of photos of the classes of photos-tiny")
    parser.add_argument("--limit", type=int, default=200, help="photos (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="of the measurement of time; 0 for none (%(default)s)")
    options = parser.parse_args()
    print(machine())
    torch.set_num_threads(1)
    if options.seeds:
        proofs(options.seeds, options.steps)
    if options.pictures:
        real(options.pictures, options.limit)
        if options.repeats:
            speed(options.pictures, options.limit, options.repeats)


if __name__ == "__main__":
    main()
