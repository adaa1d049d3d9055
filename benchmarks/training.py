"""How well small networks read digits after some seconds of one core, and how long a drawing waits beside trainings.

Each network is trained by ``train_small`` and, at the same time on another core, in PyTorch's plain loop: the same
shape of ``nn.TransformerEncoder``, the same digits, shifts, optimiser and learning rates.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import httpx
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.load import Record, Visitor, drawings, loaded_server
from benchmarks.server import Server
from vit_demo.model import ViTConfig
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.training import small

DEFAULT = small.DEFAULT_CONFIG
NETWORKS = {
    "width 64, 4 blocks, 4 heads, patches of 7": DEFAULT,
    "the same without positions": replace(DEFAULT, pos_embed="none"),
    "the same with the mean of the patches": replace(DEFAULT, pool="mean", class_token=False),
    "the same with patches of 4": replace(DEFAULT, patch_size=4),
    "the MNIST notebook's (width 8, 2 blocks)": MNIST_FROM_SCRATCH,
}


class Plain(nn.Module):
    """The network as one would write it with PyTorch's layers."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width, patches = config.embed_dim, (28 // config.patch_size) ** 2
        self.patches = nn.Conv2d(1, width, config.patch_size, config.patch_size)
        self.token = nn.Parameter(torch.zeros(1, 1, width)) if config.class_token else None
        has_positions = config.pos_embed != "none"
        count = patches + config.class_token
        self.positions = nn.Parameter(0.02 * torch.randn(1, count, width)) if has_positions else None
        hidden = int(width * config.mlp_ratio)
        layer = nn.TransformerEncoderLayer(
            width, config.num_heads, hidden, 0.0, F.gelu, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, config.depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, digits: Tensor) -> Tensor:
        """Logits ``[B, 10]`` of digits ``[B, 1, 28, 28]``."""
        x = self.patches(digits).flatten(2).mT  # [B, patches, width]
        if self.token is not None:
            x = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        x = self.encoder(x if self.positions is None else x + self.positions)
        return self.head(x[:, 0] if self.token is not None else x.mean(1))


def train_plainly(config: ViTConfig, seconds: float) -> tuple[int, float]:
    """The number of steps, and the share of the test digits that are right."""
    torch.manual_seed(0)
    model, generator = Plain(config), torch.Generator().manual_seed(0)
    digits, labels = (part[: small.NUM_TRAIN] for part in small.quick_digits())
    optimiser = torch.optim.AdamW(model.parameters(), lr=small.LEARNING_RATE, weight_decay=small.WEIGHT_DECAY)
    started, step = time.perf_counter(), 0
    while (gone := (time.perf_counter() - started) / seconds) < 1:
        if step % (len(digits) // small.BATCH_SIZE) == 0:
            order = torch.randperm(len(digits), generator=generator)
        batch = order[step * small.BATCH_SIZE % (len(digits) - small.BATCH_SIZE) :][: small.BATCH_SIZE]
        for group in optimiser.param_groups:
            group["lr"] = small.LEARNING_RATE * min((step + 1) / small.WARM_UP, 1 - gone)
        loss = F.cross_entropy(model(small.shift(digits[batch], generator)), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
    return step, small.accuracy(model)


def train_ours(config: ViTConfig, seconds: float) -> tuple[int, float]:
    """The same by ``train_small``."""
    _, history = small.train_small(config, seconds=seconds)
    return history.steps, history.accuracy[-1][1]


def compare(seconds: list[float]) -> None:
    """Prints a row for each network: both trained at once, one core each."""
    names = " | ".join(f"{value:g} s: steps | accuracy % | plain: steps | accuracy %" for value in seconds)
    print(f"| network | {names} |\n|---|{'---:|' * 4 * len(seconds)}", flush=True)
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for name, config in NETWORKS.items():
            cells = []
            for value in seconds:
                both = [pool.submit(train, config, value) for train in (train_ours, train_plainly)]
                cells += [f"{steps:,} | {100 * share:.1f}" for steps, share in (one.result() for one in both)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


async def train_on(server: Server, address: str, until: float) -> None:
    """Trains on the page from an address until a time, and asks how far it is."""
    async with httpx.AsyncClient(base_url=server.url, timeout=60, headers={"X-Forwarded-For": address}) as client:
        visitor, run = Visitor(server, client, Record()), None
        while time.monotonic() < until:
            request = {"run": run} if run else {"begin": {"config": DEFAULT.to_dict(), "seconds": 60}}
            found = await visitor.timed("training", {"kind": "train", **request})
            run = None if found["state"] in ("done", "ended") else found["run"]
        if run:
            await visitor.timed("training", {"kind": "train", "run": run, "cancel": True})


async def wait(server: Server, seconds: float) -> None:
    """Prints what a visitor who draws waits for, alone and beside two trainings."""
    digits = itertools.cycle(drawings(int(40 * seconds)))

    async def draw() -> float:
        async with httpx.AsyncClient(
            base_url=server.url, timeout=60, headers={"X-Forwarded-For": "198.51.100.1"}
        ) as client:
            visitor, until = Visitor(server, client, Record()), time.monotonic() + seconds
            while time.monotonic() < until:
                digit, drawing = next(digits)
                source = {"drawing": drawing, "preset": "digits-small", "patch_size": 4, "fit": "crop"}
                found = await visitor.timed("drawing", {"kind": "result", "source": source})
                if found["predictions"]["labels"][0] != str(digit):
                    raise RuntimeError("another digit")
                await asyncio.sleep(0.3)
        return statistics.median(visitor.record.waited["drawing"])

    alone = await draw()
    trainings = [
        asyncio.create_task(train_on(server, f"203.0.113.{n}", time.monotonic() + seconds + 5)) for n in (1, 2)
    ]
    await asyncio.sleep(3)
    beside = await draw()
    await asyncio.gather(*trainings)
    times = f"{1000 * alone:.0f} ms alone, {1000 * beside:.0f} ms beside two trainings, {beside / alone:.1f} times"
    print(f"\na drawing: {times}")


def main() -> None:
    """Prints both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, nargs="*", default=[10, 30, 60], help="of each training (%(default)s)")
    options = parser.parse_args()
    if options.seconds:
        compare(options.seconds)
    with loaded_server() as server:
        asyncio.run(wait(server, 20))
