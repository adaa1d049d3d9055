"""Many visitors who draw, point at the picture, change the patch size, explain photos, and run slow methods.

The server runs in a separate process. No two drawings are the same, so no result of a drawing comes from a cache. Of
sixteen visitors, twelve draw, two change the patch size of a photo, one requests slow maps, and one downloads a model
from a slow Hub (one visitor alone draws). Every answer is checked. The client takes processor time from the server, so
the table gives what both used; compare rows of one run only, and only on a machine that is otherwise idle.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import os
import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
from PIL import Image, ImageChops

from benchmarks.server import Server, SlowHub
from vit_demo.training.small import DEFAULT_CONFIG
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests.payload import data_url

PHOTO = Path(str(files("gradio") / "media_assets" / "images" / "lion.jpg"))
PHOTO_SIZES = (10, 12, 15, 20)
METHODS = ("relevance", "libra_fullgrad", "attnlrp", "grad_cam", "legrad", "integrated_gradients", "occlusion")
FURTHER: tuple[dict[str, Any], ...] = (
    *({"kind": "map", "method": method, "label": label} for method in METHODS for label in (1, 2)),
    {"kind": "attention_maps", "query": 0},
    {"kind": "tokens", "block": 1},
    {"kind": "logit_lens"},
    {"kind": "steps"},
    {"kind": "input"},
    {"kind": "random_order", "order": 1},
    {"kind": "smallest_set", "wanted": "enough"},
)
"""What the visitors of the memory test ask for about their picture."""
KINDS = ("drawing",) * 12 + ("photo",) * 2 + ("slow", "download")
"""What sixteen visitors do; ``ORDER`` mixes them, always in the same way."""
ORDER = [0, *random.Random(1).sample(range(1, 16), 15)]

HEAD = """\
| visitors | what | per s | p50 ms | p95 | p99 | errors | wrong | calls an answer | kB | cores: server + client |
|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def drawings(count: int) -> list[tuple[int, str]]:
    """Digits and drawings of them, slightly rotated and shifted, all different."""
    found = []
    for number in range(count):
        digit = number % 10
        turned = example_picture(digit).rotate(random.uniform(-6, 6), Image.Resampling.BICUBIC, fillcolor=255)
        found.append((digit, data_url(ImageChops.offset(turned, random.randint(-9, 9), random.randint(-9, 9)))))
    return found


@dataclass
class Record:
    """What visitors waited for.

    Attributes:
        waited: Seconds until each answer, by what was done.
        errors: Answers that are errors, or did not come.
        wrong: Answers to something else.
        calls: Requests sent, the repeated ones included.
        nbytes: Bytes of all answers as they were sent.
    """

    waited: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    calls: int = 0
    nbytes: int = 0

    @property
    def answers(self) -> int:
        """Answers of all kinds."""
        return sum(map(len, self.waited.values()))


class Wrong(Exception):
    """An answer that is not the one to its request."""


@contextmanager
def loaded_server() -> Iterator[Server]:
    """A server that uses a slow Hub, after a warm-up."""
    random.seed(0)
    print(f"{os.cpu_count()} cores, load average before the server starts: {os.getloadavg()[0]:.1f}\n")
    hub = ThreadingHTTPServer(("127.0.0.1", 0), SlowHub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    server = Server(f"http://127.0.0.1:{hub.server_port}")
    try:
        asyncio.run(endurance(server, 100))
        yield server
    finally:
        server.stop()


class Visitor:
    """A visitor of the page.

    Args:
        server: The server.
        client: The HTTP client.
        record: Where the times go.
    """

    def __init__(self, server: Server, client: httpx.AsyncClient, record: Record) -> None:
        self.server, self.client, self.record = server, client, record

    async def draw(self, digit: int, drawing: str) -> dict[str, Any]:
        """Draws a digit, points at the picture, and sometimes changes the patch size; returns the stage's payload."""
        size = random.choice((4, 4, 4, 7, 14))
        source = {"drawing": drawing, "preset": "digits-small", "patch_size": size, "fit": "crop"}
        result = await self.timed("drawing", {"kind": "result", "source": source})
        found = result["predictions"]["labels"][0]
        check(found == str(digit), f"{digit} read as {found}")
        check(result["grid"] == [28 // size] * 2, f"patch size {size}, grid {result['grid']}")
        if random.random() < 0.5:
            trace = await self.timed("pointing", {"kind": "block", "source": result["source"], "block": 5})
            check(set(trace) == {"q", "k", "logsumexp"}, "not a trace")
        if random.random() < 0.25:
            other = {**source, "patch_size": 2}
            result = await self.timed("patch size", {"kind": "result", "source": other})
            check(result["grid"] == [14, 14], f"patch size 2, grid {result['grid']}")
        return result

    async def train(self) -> None:
        """Trains a network for a few steps."""
        request: dict[str, Any] = {"begin": {"config": DEFAULT_CONFIG.to_dict(), "steps": 5}}
        while (found := await self.timed("training", {"kind": "train", **request}))["state"] != "done":
            check(found["state"] != "ended", "a training ended early")
            request = {"run": found["run"]}

    async def upload(self, width: int, height: int = 700) -> str:
        """Uploads the photo, resized; returns its path on the server."""
        file = io.BytesIO()
        Image.open(PHOTO).resize((width, height)).save(file, "JPEG")
        sent = await self.client.post("/gradio_api/vit_demo/photo", content=file.getvalue())
        return sent.raise_for_status().json()["path"]

    async def explain(self, photo: str, size: int) -> dict[str, Any]:
        """Explains a photo; returns the stage's payload."""
        source = {"upload": photo, "preset": "photos-tiny", "patch_size": size, "fit": "crop"}
        result = await self.timed("photo", {"kind": "result", "source": source})
        check(result["source"]["upload"] == photo and result["source"]["patch_size"] == size, "another photo")
        return result

    async def timed(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        """The result of a request, sent until it is there; its time is recorded."""
        started = time.perf_counter()
        while True:
            response = await self.client.post("/gradio_api/vit_demo/request", json=request)
            reply = response.raise_for_status().json()
            self.record.calls += 1
            if "done" not in reply:
                break
        if "result" not in reply:
            raise RuntimeError(reply.get("error", "an empty reply"))
        self.record.waited[what].append(time.perf_counter() - started)
        self.record.nbytes += response.num_bytes_downloaded
        return reply["result"]

    async def act(self, kind: str, until: float, digits: Any) -> None:
        """Does one thing after the other until a time."""
        photo, number = "", itertools.count()
        while time.monotonic() < until:
            try:
                if kind == "drawing":
                    await self.draw(*next(digits))
                elif kind == "download":
                    await asyncio.wait_for(self.timed("download", {"kind": "model", "name": "vit-ti16"}), 5)
                else:
                    photo = photo or await self.upload(random.randint(1000, 1400))
                    result = await self.explain(photo, PHOTO_SIZES[next(number) % 4])
                    if kind == "slow":
                        sent = {"kind": "map", "method": "local_surrogate", "source": result["source"]}
                        await self.timed("slow map", {**sent, "label": next(number)})
            except TimeoutError:
                continue  # a download takes longer than any row of the table
            except StopIteration:
                raise RuntimeError("more drawings were needed than were made: shorten the run") from None
            except Wrong as error:
                self.record.wrong.append(str(error))
            except Exception as error:
                self.record.errors.append(repr(error))


def check(condition: bool, message: str) -> None:
    """Raises ``Wrong`` if the condition does not hold."""
    if not condition:
        raise Wrong(message)


async def row(server: Server, visitors: int, seconds: float) -> Record:
    """Prints the rows of a number of visitors."""
    record = Record()
    digits = iter(drawings(int(seconds * 120)))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:
        cpu, own, started = server.cpu_seconds, time.process_time(), time.monotonic()
        everyone = [Visitor(server, client, record) for _ in range(visitors)]
        kinds = [KINDS[ORDER[number % 16]] for number in range(visitors)]
        await asyncio.gather(*(v.act(k, started + seconds, digits) for v, k in zip(everyone, kinds, strict=True)))
        took = time.monotonic() - started
        used = (server.cpu_seconds - cpu) / took, (time.process_time() - own) / took
    per_answer = f"{record.calls / record.answers:.2f} | {record.nbytes / record.answers / 1000:.1f}"
    for what, waited in sorted(record.waited.items()):
        cuts = statistics.quantiles([*waited, *waited[:1]], n=100)
        p50, p95, p99 = (f"{1000 * cuts[at - 1]:.0f}" for at in (50, 95, 99))
        print(f"| {visitors} | {what} | {len(waited) / took:.1f} | {p50} | {p95} | {p99} | | | | | |")
    print(
        f"| {visitors} | all | {record.answers / took:.1f} | | | | {len(record.errors)} | {len(record.wrong)} | "
        f"{per_answer} | {used[0]:.2f} + {used[1]:.2f} |",
        flush=True,
    )
    return record


async def endurance(server: Server, count: int, seen: Callable[[int], object] = lambda number: None) -> Record:
    """So many requests of new visitors, eight at a time, each with a drawing of their own, every tenth with a photo.

    Half of them look further, and one of two hundred trains a network. ``seen`` is called with the number of answers.
    """
    record = Record()
    left = itertools.takewhile(lambda _: record.answers < count, itertools.count())
    digits = itertools.chain.from_iterable(drawings(100) for _ in itertools.count())

    async def visit(client: httpx.AsyncClient) -> None:
        for number in left:
            seen(record.answers)
            visitor = Visitor(server, client, record)
            try:
                if number % 10:
                    result = await visitor.draw(*next(digits))
                else:
                    photo = await visitor.upload(random.randint(700, 2800))
                    result = await visitor.explain(photo, PHOTO_SIZES[number // 10 % 4])
                if random.random() < 0.5:
                    await visitor.timed("further", random.choice(FURTHER) | {"source": result["source"]})
                if number % 200 == 199:
                    await visitor.train()
            except Exception as error:
                record.errors.append(repr(error))

    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
        await asyncio.gather(*(visit(client) for _ in range(8)))
    return record


def main() -> None:
    """Prints a table, and the server's memory before and after many more visitors."""
    parser = argparse.ArgumentParser(description="Answers a second and waiting times of many visitors.")
    parser.add_argument("--visitors", type=int, nargs="+", default=[1, 8, 32, 64], help="at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="of each number of visitors (%(default)s)")
    parser.add_argument("--requests", type=int, default=2000, help="of the memory test (%(default)s)")
    options = parser.parse_args()
    with loaded_server() as server:
        print(HEAD)
        records = [asyncio.run(row(server, visitors, options.seconds)) for visitors in options.visitors]
        records.append(asyncio.run(endurance(server, 1000)))  # fills the caches
        before = server.megabytes, server.num_files

        marks = iter(range(0, options.requests, max(1, options.requests // 20)))
        shown = next(marks)

        def report(answers: int) -> None:
            nonlocal shown
            if answers >= shown:
                print(f"  {answers:6} answers: {server.megabytes:.0f} MB", flush=True)
                shown = next(marks, options.requests)

        records.append(asyncio.run(endurance(server, options.requests, report)))
        after = server.megabytes, server.num_files
        growth = f"{before[0]:.0f} -> {after[0]:.0f} MB ({100 * (after[0] / before[0] - 1):+.1f} %)"
        print(f"\n{options.requests} requests later: {growth}, files {before[1]} -> {after[1]}")
    for record in records:
        for message in sorted({*record.errors, *record.wrong})[:5]:
            print(f"  {message}")
