"""The limits of jobs and caches: how much may run at once, be queued, and be kept."""

from dataclasses import dataclass

import torch

from vit_demo.resources import memory_limit
from vit_demo.weights import Preset, costs

GRACE = 5.0  # seconds for which a job goes on after it was last polled or waited for

JOB_SECONDS, STUCK_SECONDS, QUICK_STUCK_SECONDS = 900.0, 960.0, 60.0
"""Time that a job may take before it is stopped at its next report, and after which its thread counts as stuck; of
those for digits, none takes as long."""

QUICK_SECONDS, USUAL_SECONDS = 0.06, 0.1
"""What a job for digits may take, half as much again as a pass of ``digits-small``; and one without an estimate."""


@dataclass(frozen=True)
class WorkerPool:
    """The worker threads of one kind of work.

    Attributes:
        workers: Jobs that run at once.
        waiting: Jobs that may be queued; further ones are refused.
        niceness: By how much the priority of its threads is lowered, 0 to 19, on Linux.
        threads: Threads of one matrix product; torch's own choice for 0. On a busy processor a small network is many
            times faster on one thread, because several wait for each other after every product.
    """

    workers: int
    waiting: int
    niceness: int = 0
    threads: int = 0


POOLS = {
    "health": WorkerPool(workers=1, waiting=1),
    "digits": WorkerPool(workers=2, waiting=256, threads=1),
    "photos": WorkerPool(workers=2, waiting=64, niceness=5),
    "live digits": WorkerPool(workers=2, waiting=256, niceness=4, threads=1),
    "live photos": WorkerPool(workers=2, waiting=64, niceness=7, threads=1),
    "files": WorkerPool(workers=2, waiting=32, niceness=5),
    "slow": WorkerPool(workers=2, waiting=16, niceness=10),
    "training": WorkerPool(workers=2, waiting=64, niceness=12, threads=1),  # a class shares an address
    "downloads": WorkerPool(workers=4, waiting=32, niceness=5),
    "custom": WorkerPool(workers=2, waiting=32, niceness=10),
    "custom slow": WorkerPool(workers=2, waiting=16, niceness=12),
    "custom downloads": WorkerPool(workers=4, waiting=32, niceness=5),
    "custom proofs": WorkerPool(workers=2, waiting=32, niceness=12),
}
"""A sign of life; what takes no longer than a digit, other work of a few passes, both while a visitor draws or films,
that on a picture file which must be decoded first, work of many passes, training, and downloads; and of models that
visitors brought the quick work, the slow, downloads, and the proofs that their attention is seen. No priority is so low
that its threads get no time at all: of a process that ends, the last thread frees the memory."""

SMALL_JOB = 24 << 20  # jobs of up to so many bytes are not counted, so that no digit waits for memory

MEMORY = min(1 << 30, memory_limit() // 8)
"""Bytes that all running jobs may need together; a job that needs more runs alone. Those of models that visitors
brought have half as many for themselves."""

MEMORY_OF_ONE = memory_limit() // 3  # bytes that one job of a visitor may need; a larger one is refused

MEMORY_OF_TRAINING = MEMORY // 8  # bytes of one training: two leave what the largest job counts as
RESULT_BYTES = min(96 << 20, memory_limit() // 32)  # cached results on the CPU; see ``result_bytes``
PREPARED_BYTES = 8 << 20  # limit of the cached presets of the Hub, with their configurations


def result_bytes(device: torch.device) -> int:
    """Limit of the cached results, whose traces stay on the device that computed them."""
    if device.type != "cuda":
        return RESULT_BYTES
    return min(20 * RESULT_BYTES, torch.cuda.get_device_properties(device).total_memory // 8)


def job_bytes(preset: Preset, patch_size: int, *, slow: bool = False) -> int:
    """Estimated memory of a job on one picture: of a map, or of a batch of passes if it is ``slow``."""
    estimate = costs.many_passes if slow else costs.backward
    return estimate(preset.config, patch_size, has_mask=preset.has_mask).nbytes
