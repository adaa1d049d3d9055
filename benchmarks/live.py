"""Visitors who all draw: live answers a second, the gaps between them, and an ordinary drawing beside them.

Each visitor sends the drawing so far, and the next when the answer is there, as the page does; told to wait, it waits
longer. No two drawings are the same. The server runs in a process of its own; the client, which sends and reads bytes
without a library, takes processor time beside it. Compare rows of one run only.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import io
import itertools
import json
import os
import random
import statistics
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from PIL import Image, ImageDraw

from benchmarks.load import drawings
from benchmarks.server import Server
from vit_demo.web.catalog.example_digits import DIGITS, PEN_WIDTH, SIDE, smooth

HEAD = """\
| visitors | addresses | answers a s | of each | median gap ms | longest | waits | CPU ms | ordinary ms | times alone |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""
MOVES = 45
"""Pictures of a stroke while it is drawn."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
"""Seconds, as in ``shared/live.js``."""


@dataclass
class Record:
    """Seconds between the answers of each visitor, and until those to ordinary drawings; how many were told to wait."""

    gaps: list[float] = field(default_factory=list)
    told_to_wait: int = 0
    ordinary: list[float] = field(default_factory=list)


class Connection:
    """A connection that is kept: JSON to the server, as from an address behind a proxy, and back."""

    def __init__(self, server: Server, address: str) -> None:
        self._port, self._address = int(server.url.rpartition(":")[2]), address

    async def open(self) -> Connection:
        """Connects."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def post(self, route: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request."""
        body = json.dumps(fields).encode()
        head = f"POST /gradio_api/vit_demo/{route} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
        head += (
            f"X-Forwarded-For: {self._address}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        headers = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(headers.partition(b"content-length:")[2].partition(b"\r\n")[0])
        reply = await self._reader.readexactly(length)
        return json.loads(gzip.decompress(reply) if b"content-encoding: gzip" in headers else reply)


def source_of(drawing: str) -> dict[str, Any]:
    """The source of a drawing."""
    return {"drawing": drawing, "preset": "digits-small", "patch_size": 7, "fit": "crop"}


def growing(digit: int) -> Iterator[str]:
    """A digit while it is drawn, again and again, each time at another place: grey PNGs as ``shared/greyPng.js``'s."""
    for _ in itertools.count():
        size, left, top = random.uniform(0.6, 0.9), random.uniform(0, 0.1), random.uniform(0, 0.1)
        picture = Image.new("L", (SIDE, SIDE), 255)
        draw, radius = ImageDraw.Draw(picture), PEN_WIDTH * SIDE / 2
        path = [
            (SIDE * (left + size * x), SIDE * (top + size * y))
            for stroke in DIGITS[str(digit)]
            for x, y in smooth(stroke)
        ]
        for first, last in itertools.pairwise(round(move * len(path) / MOVES) for move in range(MOVES + 1)):
            for x, y in path[first:last]:
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=0)
            file = io.BytesIO()
            picture.save(file, "PNG")
            yield "data:image/png;base64," + b64encode(file.getvalue()).decode()


async def draw_live(server: Server, address: str, number: int, made: list[str], until: float, record: Record) -> None:
    """One visitor, who draws until a time."""
    connection, slower, answered = await Connection(server, address).open(), 0.0, time.perf_counter()
    for drawing in itertools.cycle(made):
        fields = {"kind": "result", "live": f"page {number}", "source": source_of(drawing)}
        while "done" in (reply := await connection.post("live", fields)):
            pass
        if "result" in reply:
            slower = slower / 2 if slower > FIRST_PAUSE else 0.0
            now = time.perf_counter()
            record.gaps.append(now - answered)
            answered = now
        else:
            record.told_to_wait += 1
            slower = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * slower))
        await asyncio.sleep(slower)
        if time.monotonic() > until:
            return


async def draw_ordinary(server: Server, address: str, made: Iterator[str], until: float, record: Record) -> None:
    """A visitor who ends a stroke twice a second until a time."""
    connection = await Connection(server, address).open()
    while time.monotonic() < until:
        await asyncio.sleep(0.5)
        fields, started = {"kind": "result", "source": source_of(next(made))}, time.perf_counter()
        while "done" in (reply := await connection.post("request", fields)):
            pass
        if "result" not in reply:
            raise RuntimeError(reply)
        record.ordinary.append(time.perf_counter() - started)


async def row(server: Server, visitors: int, addresses: int, seconds: float, digits: Iterator[str]) -> str:
    """One row of the table, whose ordinary drawings were measured alone just before."""
    made = [list(itertools.islice(growing(number % 10), int(30 * seconds) + MOVES)) for number in range(visitors)]
    alone, record = Record(), Record()
    await draw_ordinary(server, "198.51.100.0", digits, time.monotonic() + seconds / 2, alone)
    cpu, started = server.cpu_seconds, time.monotonic()
    everyone = [
        draw_live(server, f"198.51.100.{number % addresses}", number, pictures, started + seconds, record)
        for number, pictures in enumerate(made)
    ]
    other = "198.51.100.0" if addresses == 1 else "203.0.113.1"
    await asyncio.gather(*everyone, draw_ordinary(server, other, digits, started + seconds, record))
    took, count = time.monotonic() - started, len(record.gaps)
    used = 1000 * (server.cpu_seconds - cpu) / (count + len(record.ordinary))
    beside, before = (1000 * statistics.median(each.ordinary) for each in (record, alone))
    return (
        f"| {visitors} | {addresses} | {count / took:.0f} | {count / took / visitors:.1f} | "
        f"{1000 * statistics.median(record.gaps):.0f} | {1000 * max(record.gaps):.0f} | {record.told_to_wait} | "
        f"{used:.1f} | {beside:.0f} | {beside / before:.1f} |"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description="Live answers of visitors who all draw, and an ordinary drawing beside them."
    )
    parser.add_argument("--visitors", type=int, nargs="+", default=[1, 8, 30], help="at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="of each row (%(default)s)")
    options = parser.parse_args()
    random.seed(0)
    print(f"{os.cpu_count()} cores, load average before the server starts: {os.getloadavg()[0]:.1f}\n")
    digits = (drawing for _ in itertools.count() for _, drawing in drawings(20))
    server = Server()
    try:
        asyncio.run(row(server, 2, 2, 2, digits))  # loads the network
        print(HEAD)
        for visitors in options.visitors:
            for addresses in sorted({visitors, 1}, reverse=True):
                print(asyncio.run(row(server, visitors, addresses, options.seconds, digits)), flush=True)
    finally:
        server.stop()
