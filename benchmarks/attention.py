"""Time and memory of attention maps and explanations on a ViT-Ti, compared with other libraries."""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.cases import (
    BASELINE,
    CASES,
    MANY_PASSES,
    PEAK_CASES,
    Run,
    full_matrix_relevance,
    full_matrix_rollout,
    timm_extract,
    timm_plain,
    transformers_attentions,
)
from vit_demo.methods import attention_from, relevance, rollout, to_grid
from vit_demo.model import ViT, ViTConfig
from vit_demo.trace import OwnViT, Trace, TracedViT

THREADS = 2
SIZES = {197: (224, 16), 785: (224, 8), 2305: (384, 8), 9217: (768, 8)}
"""Image and patch size in pixels for each number of tokens, class token included."""

CHECKED_UP_TO = 2305
"""Beyond this the matrices of the comparison may not fit into memory."""


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    case: str
    tokens: int
    milliseconds: float
    ratio: float
    megabytes: float | None = None


@torch.inference_mode(False)  # relevance differentiates
def build(tokens: int) -> tuple[TracedViT, Tensor]:
    """A seeded ViT-Ti with random weights everywhere, and one random image for it."""
    torch.manual_seed(0)
    image_size, patch_size = SIZES[tokens]
    vit = ViT(ViTConfig(image_size=image_size, patch_size=patch_size)).eval().requires_grad_(False)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return OwnViT(vit), torch.randn(1, 3, image_size, image_size)


def check(model: TracedViT, images: Tensor) -> None:
    """Checks that the cases compute the same thing.

    Raises:
        AssertionError: If logits or attention of timm or transformers differ from ours, or rollout or relevance from
            those of whole matrices.
    """
    trace = Trace()
    logits = model(images, trace)
    torch.testing.assert_close(timm_plain(model)(images), logits, atol=1e-3, rtol=1e-3)
    ours = [attention_from(trace, block, 0) for block in range(trace.num_blocks)]
    for theirs in (timm_extract(model)(images).values(), transformers_attentions(model)(images).attentions):
        torch.testing.assert_close([maps[:, :, 0] for maps in theirs], ours, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(rollout(trace), full_matrix_rollout(model)(images), atol=1e-6, rtol=1e-3)
    found = relevance(model, images, logits.argmax(1))
    expected = to_grid(full_matrix_relevance(model)(images), trace)
    torch.testing.assert_close(found, expected, atol=1e-4 * float(expected.max()), rtol=1e-3)


def measure(tokens: int, repeats: int, cases: list[str]) -> list[Result]:
    """Times cases in rounds, each in another order, so that other load on the machine affects all cases alike.

    Returns:
        For each case the median time, and the median over rounds of its time over the plain forward's.
    """
    model, images = build(tokens)
    if tokens <= CHECKED_UP_TO:
        check(model, images)
    runs = {name: CASES[name](model) for name in cases}
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    shuffle = random.Random(0).shuffle
    for _ in range(repeats + 1):
        shuffle(order)
        for name in order:
            started = time.perf_counter()
            runs[name](images)
            times[name].append(1e3 * (time.perf_counter() - started))
    rounds = {name: series[1:] for name, series in times.items()}  # the first round warms up
    return [
        Result(
            name,
            tokens,
            statistics.median(series),
            statistics.median(one / plain for one, plain in zip(series, rounds[BASELINE], strict=True)),
        )
        for name, series in rounds.items()
    ]


def peak_megabytes(case: str, tokens: int) -> float:
    """By how much a case's peak memory exceeds that of a plain forward pass; called in a separate process."""
    model, images = build(tokens)
    run = PEAK_CASES[case](model)
    plain = peak(model, images)
    return peak(run, images) - plain


def peak(run: Run, images: Tensor) -> float:
    """The highest resident memory of this process during one call, in megabytes.

    Linux keeps it as VmHWM, which can be reset to what is resident now; ``getrusage`` would include the peak of the
    imports, and even that of the process which started this one.
    """
    Path("/proc/self/clear_refs").write_text("5")
    kept = run(images)
    status = Path("/proc/self/status").read_text()
    del kept
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def with_memory(result: Result) -> Result:
    """The result with its peak memory, measured in a separate process."""
    command = [sys.executable, "-m", "benchmarks", "attention", "--peak", result.case, "--tokens", str(result.tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return replace(result, megabytes=math.inf)  # the system ran out of memory
    done.check_returncode()
    return replace(result, megabytes=float(done.stdout))


def table(results: list[Result]) -> str:
    """The results of one sequence length as Markdown."""
    lines = [
        f"| {results[0].tokens:,} tokens | median ms | of plain forward | peak MB over plain forward |",
        "|---|---:|---:|---:|",
    ]
    for one in results:
        memory = "" if one.megabytes is None else f"{one.megabytes:,.0f}" if one.megabytes < math.inf else "none left"
        lines.append(f"| {one.case} | {one.milliseconds:,.1f} | {one.ratio:.2f} | {memory} |")
    return "\n".join(lines)


def machine() -> str:
    """CPU, torch, threads and load in one line."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    load = os.getloadavg()[0]
    return f"{date.today()}: {cpu}, torch {torch.__version__}, {THREADS} threads, load {load:.1f} at the start"


@torch.inference_mode()
def main() -> None:
    """Reads the command line, measures, prints Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", choices=SIZES, default=[197, 2305])
    parser.add_argument("--repeats", type=int, default=9, help="timed rounds")
    parser.add_argument(
        "--memory", action="store_true", help="peak memory too, each case in its own process; Linux only"
    )
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE",
        help="only these, beside the plain forward; whole matrices of 9,217 tokens need about 30 GB",
    )  # fmt: skip
    parser.add_argument("--peak", choices=CASES, help="print the peak memory of one case only, in MB")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    if arguments.peak:
        print(peak_megabytes(arguments.peak, arguments.tokens[0]))
        return
    print(machine())
    for tokens in arguments.tokens:
        cases = [name for name in arguments.cases if tokens == min(SIZES) or name not in MANY_PASSES]
        results = measure(tokens, arguments.repeats, list(dict.fromkeys([BASELINE, *cases])))
        if arguments.memory:
            results = [with_memory(result) for result in results]
        print(f"\n{table(results)}", flush=True)
