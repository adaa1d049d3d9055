"""Programs of ours as processes of their own, each on a free port of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(port: int, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Runs Python with these arguments, which serve the page on a port."""
    environment = {
        **os.environ,
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        **settings,
    }
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, **output)


def wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Waits until the page is served."""
    deadline = time.monotonic() + 180  # importing torch takes long on a busy machine
    while time.monotonic() < deadline:
        try:
            urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30).close()
            return
        except OSError:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.1)
    raise AssertionError("it did not start")
