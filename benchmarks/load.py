"""Load test: response times of drawings with many visitors and slow work at once, and memory and files left behind.

    python -m benchmarks.load --visitors 32 --seconds 60

The server runs in a separate process. One visitor draws alone, then during slow work (a photo at changing patch sizes,
patch dropping of two photos, and two slow downloads), then all visitors do. Compare the first two only within one run.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
from PIL import Image, ImageChops

from vit_demo.web.components.pad import example_picture, to_data_url

PHOTO = Path(str(files("gradio") / "media_assets" / "images" / "lion.jpg"))


def drawing(digit: int) -> str:
    """An example digit, slightly rotated and shifted, so that no two drawings are the same."""
    turned = example_picture(digit).rotate(random.uniform(-6, 6), Image.Resampling.BICUBIC, fillcolor=255)
    return to_data_url(ImageChops.offset(turned, random.randint(-9, 9), random.randint(-9, 9)))


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

    def component(self, elem_id: str) -> int:
        """The id of a component."""
        return next(c["id"] for c in self.config["components"] if c["props"].get("elem_id") == elem_id)

    def stop(self) -> None:
        """Stops the process."""
        self.process.terminate()
        self.process.wait(60)
        self.files.cleanup()


class Visitor:
    """A visitor of the page.

    Args:
        server: The server.
        client: The HTTP client.
    """

    def __init__(self, server: Server, client: httpx.AsyncClient) -> None:
        self.server, self.client = server, client

    async def draw(self, digit: int) -> float:
        """Sends a drawing; returns the seconds until the right prediction arrived."""
        source = {"drawing": drawing(digit), "preset": "digits-small", "patch_size": 4, "fit": "crop"}
        started = time.perf_counter()
        stage = (await self.send({"kind": "result", "source": source}))["result"]
        if stage["predictions"][0]["label"] != str(digit):
            raise RuntimeError(f"{digit} was read as {stage['predictions'][0]['label']}")
        return time.perf_counter() - started

    async def upload(self, path: Path, width: int = 1200) -> str:
        """Uploads a photo, resized to a width; returns its path on the server."""
        file = io.BytesIO()
        Image.open(path).resize((width, 700)).save(file, "JPEG")
        sent = await self.client.post("/gradio_api/upload", files={"files": (path.name, file.getvalue())})
        return sent.json()[0]

    async def explain(self, photo: str, patch_size: int) -> dict[str, Any]:
        """Explains a photo; returns the stage's payload."""
        source = {"upload": photo, "preset": "photos-tiny", "patch_size": patch_size, "fit": "crop"}
        return (await self.send({"kind": "result", "source": source}))["result"]

    async def send(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request of the stage until its result is there."""
        stage = self.server.component("stage")
        body = {"data": request, "component_id": stage, "fn_name": "request", "session_hash": "x"}
        while True:
            reply = (await self.client.post("/gradio_api/component_server", json=body)).json()
            if "done" not in reply:
                return reply


@asynccontextmanager
async def slow_work(server: Server, client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Runs slow work, which digits should not wait for, for the duration of the block."""

    async def photos() -> None:
        visitor = Visitor(server, client)
        photo = await visitor.upload(PHOTO)
        while True:
            for size in (10, 12, 15, 20):
                await visitor.explain(photo, size)

    async def maps() -> None:
        visitor = Visitor(server, client)
        photo = await visitor.upload(PHOTO)
        for label in range(50):
            stage = await visitor.explain(photo, 10)
            await visitor.send({"kind": "map", "method": "patch_dropping", "label": label, "source": stage["source"]})

    async def download(name: str) -> None:
        visitor = Visitor(server, client)
        await visitor.send({"kind": "model", "name": name})

    work = [photos(), maps(), maps(), download("vit-ti16"), download("vit-s16")]
    tasks = [asyncio.ensure_future(one) for one in work]
    await asyncio.sleep(2)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, Exception):
                print(f"  slow work ended early: {end!r}")


async def visits(
    server: Server, client: httpx.AsyncClient, count: int, seconds: float
) -> tuple[list[float], list[str]]:
    """Visitors who draw one digit after another; returns the seconds of each prediction, and the errors."""
    waited: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds

    async def visit(number: int) -> None:
        visitor = Visitor(server, client)
        while time.monotonic() < end:
            try:
                waited.append(await visitor.draw((number + len(waited)) % 10))
            except Exception as error:
                errors.append(repr(error))

    await asyncio.gather(*map(visit, range(count)))
    return waited, errors


async def endurance(server: Server, client: httpx.AsyncClient, count: int) -> list[str]:
    """Many visitors, eight at a time, each with a new drawing, every tenth with a photo; returns the errors."""
    errors: list[str] = []
    left = iter(range(count))

    async def visit() -> None:
        for number in left:
            visitor = Visitor(server, client)
            try:
                if number % 10:
                    await visitor.draw(number % 10)
                else:
                    photo = await visitor.upload(PHOTO, random.randint(1000, 1400))
                    await visitor.explain(photo, (10, 12, 15, 20)[number // 10 % 4])
            except Exception as error:
                errors.append(repr(error))

    await asyncio.gather(*(visit() for _ in range(8)))
    return errors


def row(name: str, waited: list[float], errors: list[str], seconds: float) -> str:
    """One row of the table."""
    cuts = statistics.quantiles(waited, n=100)
    p50, p95, p99 = (f"{1000 * cuts[at - 1]:.0f}" for at in (50, 95, 99))
    return f"| {name} | {p50} | {p95} | {p99} | {len(waited) / seconds:.1f} | {len(errors)} |"


async def measure(server: Server, visitors: int, seconds: float, requests: int) -> None:
    """Prints the table."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:
        await visits(server, client, visitors, seconds / 6)  # warm-up
        alone, wrong = await visits(server, client, 1, seconds / 3)
        print("| visitors | p50 ms | p95 ms | p99 ms | predictions per second | errors |\n|---|---|---|---|---|---|")
        print(row("1, alone", alone, wrong, seconds / 3))
        async with slow_work(server, client):
            beside, wrong = await visits(server, client, 1, seconds / 3)
            print(row("1, beside slow work", beside, wrong, seconds / 3))
            many, wrong = await visits(server, client, visitors, seconds)
            print(row(f"{visitors}, beside slow work", many, wrong, seconds))
        ratio = statistics.median(beside) / statistics.median(alone)
        print(f"\nbeside slow work / alone, medians: {ratio:.2f}")
        if requests:
            await endurance(server, client, 600)  # fills the caches
            before = server.megabytes, server.num_files
            wrong += await endurance(server, client, requests)
            after = server.megabytes, server.num_files
            growth = 100 * (after[0] / before[0] - 1)
            print(f"{requests} requests later: {before[0]:.0f} -> {after[0]:.0f} MB ({growth:+.1f} %),", end=" ")
            print(f"files {before[1]} -> {after[1]}, each deleted after an hour")
        for error in sorted(set(wrong))[:5]:
            print(f"  {error}")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=2000, help="requests of the memory test; 0 for none")
    options = parser.parse_args()
    hub = ThreadingHTTPServer(("127.0.0.1", 0), SlowHub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    server = Server(f"http://127.0.0.1:{hub.server_port}")
    try:
        asyncio.run(measure(server, options.visitors, options.seconds, options.requests))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
