"""Whether an audit names planted shortcuts and nothing else, what it costs, and what it finds on real photos.

Small networks of digits are trained by ``train_small`` with a mark in a corner, a border or a background in 90 % of the
training pictures of the digit 3. Half of the held-out 3s have it, too; the audit is told nothing of this.

Example:
    $ python -m benchmarks audit --seeds 0 1 2 3 4
    $ python -m benchmarks audit --pictures PATH --limit 200
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import vit_demo
from benchmarks.attention import machine
from vit_demo.auditing import Audit
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
    planted = torch.full((28, 28), 0.12)
    planted[2:-2, 2:-2] = 0
    return planted


def _background() -> Tensor:
    return 0.2 * ((torch.arange(28)[:, None] + torch.arange(28)) % 2 == 0)


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


def audited(kind: str, model: ViT, seed: int) -> tuple[Audit, Tensor]:
    """An audit of held-out digits, half of whose 3s have the shortcut, and which have it."""
    digits, labels, chosen = (part[small.NUM_TRAIN :] for part in planted(kind, seed + 100, 0.5))
    return vit_demo.audit(model, list(zip(digits, labels.tolist(), strict=True)), batch_size=50), chosen


def evidence_on(kind: str, found: Audit, chosen: Tensor) -> tuple[float, float]:
    """The evidence on a shortcut, as shares of all positive evidence of the 3s with it; means over these.

    Of the positive evidence; and of what the evidence there has beyond the mean of the 3s without it. Patches count as
    far as the shortcut covers them; a background, which covers all, where it is alone.
    """
    make = SHORTCUTS[kind]
    assert make is not None
    maps = torch.from_numpy(np.stack(found.maps).astype(np.float32))
    covered = F.avg_pool2d((make() > 0).float()[None, None], found.patch_size)
    if kind == "background":
        digits = small.quick_digits()[0][small.NUM_TRAIN :][chosen]
        covered = (F.max_pool2d(digits, found.patch_size) < (BLACK + WHITE) / 2).float()
    is_digit = torch.tensor([row["truth"] == str(DIGIT) for row in found.table])
    values, without = maps[chosen], maps[is_digit & ~chosen].mean(0)
    total = values.clamp_min(0).sum((1, 2))
    on, beyond = (((part * covered.squeeze(1)).sum((1, 2)) / total) for part in (values.clamp_min(0), values - without))
    return float(on.mean()), float(beyond.mean())


def right_with_and_without(found: Audit, chosen: Tensor) -> str:
    """The shares of the 3s with the shortcut, and of those without it, that a network gets right."""
    rights = [
        [
            row["right"]
            for row, has in zip(found.table, chosen, strict=True)
            if has == one and row["truth"] == str(DIGIT)
        ]
        for one in (True, False)
    ]
    return " and ".join(f"{np.mean(part):.0%}" for part in rights)


def times(share: float, other: float) -> str:
    """How many times the other share a share is."""
    return f"{share / other:.1f}" if other > 0 else "∞"


def proofs(seeds: list[int], steps: int) -> None:
    """Prints what an audit of each network finds, and how the evidence compares with the network without a shortcut.

    Both see the same pictures. As a share is at most 1, so many times the other network's share is the most there can
    be: "at most". What evidence there has beyond other pictures has no such bound.
    """
    columns = (
        "shortcut, seed, accuracy, named, first, purity, found, 3s right with and without it, there, beyond, "
        "other network: named, 3s right, there, beyond, there: times, at most, beyond: times"
    )
    print(f"| {columns.replace(', ', ' | ')} |\n|{'---|' * len(columns.split(', '))}", flush=True)
    for seed in seeds:
        clean = trained("none", seed, steps)
        for kind in SHORTCUTS:
            model, accuracy = clean if kind == "none" else trained(kind, seed, steps)
            found, chosen = audited(kind, model, seed)
            named = [group for group in found.groups if group.is_suspicious]
            row = [kind, str(seed), f"{accuracy:.3f}", str(len(named)), named[0].why.split(":")[0] if named else ""]
            if kind != "none":
                other, _ = audited(kind, clean[0], seed)
                has = chosen[torch.from_numpy(named[0].indices)].float() if named else torch.zeros(1)
                row += [f"{has.mean():.1%}", f"{has.sum() / chosen.sum():.1%}"]
                on, beyond = evidence_on(kind, found, chosen)
                row += [right_with_and_without(found, chosen), f"{on:.3f}", f"{beyond:.3f}"]
                other_on, other_beyond = evidence_on(kind, other, chosen)
                row += [str(sum(group.is_suspicious for group in other.groups)), right_with_and_without(other, chosen)]
                row += [f"{other_on:.3f}", f"{other_beyond:.3f}"]
                row += [times(on, other_on), times(1, other_on), times(beyond, other_beyond)]
            print("| " + " | ".join(row) + " |", flush=True)


def speed(pictures: Path, limit: int, repeats: int) -> None:
    """Prints what an audit takes, in plain forward and backward passes of the same pictures.

    Ratios are by the processor's time of this process, all threads together, which other programs change least.
    """
    explainer = vit_demo.Explainer("photos-tiny")
    paths = vit_demo.audit(explainer, pictures, limit=limit).images
    network = vit_demo.load("photos-tiny")

    def read(paths: list[Path]) -> Tensor:
        return torch.cat([explainer.prepare(path, None).given.pixels for path in paths])

    parts = [paths[start : start + 16] for start in range(0, len(paths), 16)]
    batches = [read(part) for part in parts]

    def passes(inputs: Iterable[Tensor]) -> None:
        for x in inputs:
            network(x.clone().requires_grad_()).amax(1).sum().backward()

    def captum() -> None:
        from captum.attr import InputXGradient

        attribute = InputXGradient(network)
        for x in batches:
            with torch.no_grad():
                targets = network(x).argmax(1)
            attribute.attribute(x.clone().requires_grad_(), target=targets).sum(1)

    works: dict[str, Callable[[], object]] = {
        "plain passes": lambda: passes(batches),
        "plain passes, pictures read": lambda: passes(map(read, parts)),
        "audit": lambda: vit_demo.audit(explainer, pictures, limit=limit),
        "captum, InputXGradient": captum,
    }
    if importlib.util.find_spec("captum") is None:
        del works["captum, InputXGradient"]
    clocks = {"processor": time.process_time, "clock": time.perf_counter}
    spent: dict[str, list[list[float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            started = [clock() for clock in clocks.values()]
            work()
            spent[name].append([clock() - start for clock, start in zip(clocks.values(), started, strict=True)])
    plain = np.array(spent["plain passes"])
    for name, found in spent.items():
        per_picture = 1000 * np.median(found, 0) / len(paths)
        ratios = np.median(np.array(found) / plain, 0)
        figures = zip(clocks, per_picture, ratios, strict=True)
        print(
            f"{name}: " + "; ".join(f"{clock} {ms:.1f} ms a picture, ratio {r:.2f}" for clock, ms, r in figures),
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
    parser.add_argument("--steps", type=int, default=400, help="of their training (%(default)s)")
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
