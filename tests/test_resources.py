"""How much memory the process may use."""

from __future__ import annotations

import os
import runpy

import pytest

from vit_demo import resources
from vit_demo.inference import cache
from vit_demo.service import limits

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
    found = runpy.run_path(cache.__file__) | runpy.run_path(limits.__file__)
    assert (found["MODEL_BYTES"], found["MEMORY"], found["RESULT_BYTES"]) == (512 << 20, 256 << 20, 64 << 20)
