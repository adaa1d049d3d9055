"""The server of a load test, in a process of its own, and a slow Hub for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx


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

    def __init__(self, hub: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
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
        self.process = subprocess.Popen([sys.executable, "app.py"], env=environment, stdout=subprocess.DEVNULL)
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
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def component(self, elem_id: str) -> int:
        """The id of a component."""
        return next(c["id"] for c in self.config["components"] if c["props"].get("elem_id") == elem_id)

    def stop(self) -> None:
        """Stops the process."""
        self.process.terminate()
        self.process.wait(60)
        self.files.cleanup()
