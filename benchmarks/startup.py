"""Start-up: from ``python app.py`` to a usable page, compared with what torch and Gradio need by themselves.

    python -m benchmarks.startup --rounds 5

A page is usable once ``/healthz`` replies and the page's HTML holds the example with its prediction. The comparison
imports torch and Gradio and serves an empty ``gr.Blocks`` in a process of its own. Both run in turns, one at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]

EMPTY_PAGE = """
import gradio as gr
import torch

with gr.Blocks(analytics_enabled=False) as page:
    pass
page.launch(ssr_mode=False)
"""

OURS, EMPTY = "python app.py", "torch, Gradio, an empty Blocks"

COMMANDS: dict[str, tuple[Sequence[str], Sequence[tuple[str, bytes]]]] = {
    OURS: ((sys.executable, "app.py"), [("/healthz", b'"ok"'), ("/", b"predictions")]),
    EMPTY: ((sys.executable, "-c", EMPTY_PAGE), [("/", b"gradio")]),
}
"""By name: the command, and paths of the server with what their bodies must hold."""

POLL_SECONDS, MAX_SECONDS = 0.02, 120.0


def measure(name: str, bytecode: str) -> tuple[float, float]:
    """Starts a server and stops it once it is usable.

    Args:
        name: Of the command.
        bytecode: Folder for Python's bytecode, because some installations come without it.

    Returns:
        Wall time until then, and CPU time until then and for stopping, in seconds.
    """
    command, pages = COMMANDS[name]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": bytecode,
    }
    before = _cpu_of_children()
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            for path, content in pages:
                _wait_for(f"http://127.0.0.1:{port}{path}", content, server, start)
            wall = time.perf_counter() - start
        finally:
            server.send_signal(signal.SIGKILL)
    return wall, _cpu_of_children() - before


def _wait_for(url: str, content: bytes, server: subprocess.Popen, start: float) -> None:
    while True:
        try:
            with urlopen(url, timeout=10) as reply:
                if content in reply.read():
                    return
        except (URLError, OSError):
            pass
        if server.poll() is not None or time.perf_counter() - start > MAX_SECONDS:
            raise SystemExit(f"{url} did not become usable: start the program by itself to see why.")
        time.sleep(POLL_SECONDS)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Prints medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="measurements of each (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as bytecode:
        for name in COMMANDS:
            measure(name, bytecode)  # not counted: Python writes bytecode
        for number in range(options.rounds):
            for name in sorted(COMMANDS, reverse=bool(number % 2)):
                times[name].append(measure(name, bytecode))
    wall = {name: [one[0] for one in found] for name, found in times.items()}
    cpu = {name: [one[1] for one in found] for name, found in times.items()}
    ratios = {
        kind: statistics.median(ours / empty for ours, empty in zip(values[OURS], values[EMPTY], strict=True))
        for kind, values in (("wall", wall), ("cpu", cpu))
    }
    if options.json:
        print(json.dumps({"wall": wall, "cpu": cpu, "ratios": ratios}))
        return
    print(f"{'':32} {'wall s':>8} {'CPU s':>8}   wall time of each round")
    for name in COMMANDS:
        each = ", ".join(f"{seconds:.2f}" for seconds in wall[name])
        print(f"{name:32} {statistics.median(wall[name]):8.2f} {statistics.median(cpu[name]):8.2f}   {each}")
    print(f"{'median ratio of the rounds':32} {ratios['wall']:8.2f} {ratios['cpu']:8.2f}")


if __name__ == "__main__":
    main()
