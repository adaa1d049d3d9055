"""The app in a process of its own, for the other benchmarks; its start-up, and its memory under a limit."""

from __future__ import annotations

import argparse
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
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx

ROOT = Path(__file__).parents[1]

EMPTY_PAGE = """
import gradio as gr
import torch

with gr.Blocks(analytics_enabled=False) as page:
    pass
page.launch(ssr_mode=False)
"""

Pages = Sequence[tuple[str, bytes]]
COMMANDS: dict[str, tuple[Sequence[str], Pages]] = {
    "python app.py": ((sys.executable, "app.py"), [("/healthz", b'"ok"'), ("/", b"predictions")]),
    "torch, Gradio, an empty Blocks": ((sys.executable, "-c", EMPTY_PAGE), [("/", b"gradio")]),
}
"""By name: the command, and paths of the server with what their bodies must hold."""


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class SlowHub(BaseHTTPRequestHandler):
    """A Hub that sends files of 80 MB at about 1 MB per second."""

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""

    def do_HEAD(self) -> None:
        """Sends the headers of a file."""
        self.send_response(200)
        self.send_header("ETag", f'"{64 * "0"}"')
        self.send_header("X-Repo-Commit", 40 * "0")
        self.send_header("Content-Length", "80000000")
        self.end_headers()

    def do_GET(self) -> None:
        """Sends a file slowly."""
        self.do_HEAD()
        try:
            for _ in range(1250):
                self.wfile.write(bytes(64_000))
                time.sleep(0.06)
        except OSError:
            return  # the client closed the connection


class Server:
    """The app in a separate process.

    Args:
        hub: Address of the Hub that it uses.
    """

    def __init__(self, hub: str = "http://127.0.0.1:1") -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.files = tempfile.TemporaryDirectory()
        environment = {
            **os.environ,
            "GRADIO_SERVER_PORT": str(port),
            "GRADIO_TEMP_DIR": self.files.name,
            "GRADIO_ANALYTICS_ENABLED": "False",
            "HF_ENDPOINT": hub,
            "HF_HUB_CACHE": f"{self.files.name}/hub",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1",
            "VIT_DEMO_PROXY": "1",  # visitors are told apart by the header that a proxy adds
        }
        self.process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        for _ in range(600):
            try:
                self.config = httpx.get(f"{self.url}/config").json()
                return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start")

    @property
    def megabytes(self) -> float:
        """Resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    @property
    def num_files(self) -> int:
        """Number of files in its temporary folder, without the Hub's cache."""
        return sum(path.is_file() and "hub" not in path.parts for path in Path(self.files.name).rglob("*"))

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the process."""
        return cpu_seconds_of(self.process.pid)

    def stop(self) -> None:
        """Stops the process."""
        self.process.terminate()
        self.process.wait(60)
        self.files.cleanup()


def cpu_seconds_of(pid: int | str) -> float:
    """CPU time of a process so far (Linux)."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def startup() -> None:
    """Prints the time of both of ``COMMANDS`` to a usable page, each in a process of its own, in turns."""
    parser = argparse.ArgumentParser(description="From `python app.py` to a usable page, and torch and Gradio alone.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="measurements of each (%(default)s)")
    rounds = parser.parse_args().rounds
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(rounds + 1):
            for name in sorted(COMMANDS, reverse=bool(number % 2)):
                times[name].append(_start(*COMMANDS[name], bytecode))
    print(f"{'':32} {'wall s':>8} {'CPU s':>8}   wall time of each round")
    for name, found in times.items():
        wall, cpu = zip(*found[1:], strict=True)  # in the first round Python writes bytecode
        each = ", ".join(f"{seconds:.2f}" for seconds in wall)
        print(f"{name:32} {statistics.median(wall):8.2f} {statistics.median(cpu):8.2f}   {each}")
    ours, empty = times.values()
    pairs = list(zip(ours, empty, strict=True))[1:]
    ratios = [statistics.median(a[kind] / b[kind] for a, b in pairs) for kind in (0, 1)]
    print(f"{'median ratio of the rounds':32} {ratios[0]:8.2f} {ratios[1]:8.2f}")


def _start(command: Sequence[str], pages: Pages, bytecode: str) -> tuple[float, float]:
    """Starts a server and stops it once all pages hold what they must.

    Args:
        command: Starts it.
        pages: As in ``COMMANDS``.
        bytecode: Folder for Python's bytecode, because some installations come without it.

    Returns:
        Wall time until then, and CPU time until then and for stopping, in seconds.
    """
    port = free_port()
    environment = os.environ | {
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": bytecode,
    }
    before, start = _cpu_of_children(), time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            for path, content in pages:
                found = b""
                while content not in found:
                    if server.poll() is not None or time.perf_counter() - start > 120:
                        raise SystemExit(f"{path} did not become usable: start the program by itself to see why.")
                    time.sleep(0.02)
                    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
                        found = reply.read()
            wall = time.perf_counter() - start
        finally:
            server.send_signal(signal.SIGKILL)
    return wall, _cpu_of_children() - before


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory() -> None:
    """Explains a photo with four ViT-B/16 of random weights in turn, three times over, under a limit of memory."""
    parser = argparse.ArgumentParser(description="Memory of a server that explains one large repository after another.")
    parser.add_argument("--limit", type=float, default=4, help="GB of memory that the server may use (%(default)s)")
    limit = int(parser.parse_args().limit * 2**30)

    from vit_demo import resources

    resources.memory_limit = lambda: limit  # before the modules that read it are imported

    import timm
    from timm.models._hub import save_for_hf

    import vit_demo
    from vit_demo.web import server  # noqa: F401  what a server has imported counts as well

    photo = ROOT / "vit_demo" / "web" / "examples" / "cat.jpg"
    with tempfile.TemporaryDirectory() as folder:
        for number in range(4):
            save_for_hf(timm.create_model("vit_base_patch16_224"), f"{folder}/{number}", safe_serialization=True)
        resources.release_memory()
        for turn in range(3):
            for number in range(4):
                vit_demo.explore(photo, f"{folder}/{number}").relevance()
                status = Path("/proc/self/status").read_text()
                now, peak = (int(status.split(f"{name}:")[1].split()[0]) // 1000 for name in ("VmRSS", "VmHWM"))
                print(f"turn {turn}, repository {number}: {now} MB, peak {peak} MB", flush=True)
