"""How much memory the process may use."""

from __future__ import annotations

import asyncio
import os
import platform
import runpy
import subprocess
import sys
from unittest.mock import Mock

import pytest

from vit_demo import resources
from vit_demo.inference import networks
from vit_demo.service import job_limits
from vit_demo.web import server

from .asynchronous import run, until

pytestmark = pytest.mark.skipif(not hasattr(os, "sysconf"), reason="no such limits on this system")


@pytest.mark.parametrize(("written", "expected"), [("2147483648\n", 2 << 30), ("max\n", None), (None, None)])
def test_a_containers_limit_is_the_limit(written, expected, tmp_path, monkeypatch):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = tmp_path / "memory.max"
    if written is not None:
        limit.write_text(written)
    monkeypatch.setattr(resources, "CGROUP_LIMITS", (str(tmp_path / "none"), str(limit)))
    assert resources.memory_limit() == min(machine, expected or machine)


def test_models_jobs_and_results_follow_the_limit(monkeypatch):
    """As in a container of 2 GiB: together they leave half of it to the process itself."""
    monkeypatch.setattr(resources, "memory_limit", lambda: 2 << 30)
    found = runpy.run_path(networks.__file__) | runpy.run_path(job_limits.__file__)
    assert (found["MODEL_BYTES"], found["MEMORY"], found["RESULT_BYTES"]) == (512 << 20, 256 << 20, 64 << 20)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_freed_between_what_is_kept_goes_back_to_the_system():
    code = """
from vit_demo.resources import trim_memory
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
blocks = [b"x" * 50_000 for _ in range(4000)]
full = resident()
del blocks[::2]
kept = resident()
trim_memory()
print(full - kept, full - resident())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    by_itself, trimmed = map(int, found.stdout.split())
    assert by_itself < 20e6 and 70e6 < trimmed < 110e6, "half of 200 MB"


def test_the_server_gives_freed_memory_back_from_time_to_time(monkeypatch):
    """The heap of 20,000 varied requests was half free, in pieces."""
    trimmed = []
    monkeypatch.setattr(server, "UPLOADS_SECONDS", 0.01)
    monkeypatch.setattr(server, "CLEANING_SECONDS", 0.02)
    monkeypatch.setattr(server, "trim_memory", lambda: trimmed.append(1))
    for name in ("forget_ended", "uploads"):
        monkeypatch.setattr(server, name, Mock())

    async def wait() -> None:
        async with server._cleaned(Mock()):
            await asyncio.to_thread(until, lambda: len(trimmed) >= 3)

    run(wait())
