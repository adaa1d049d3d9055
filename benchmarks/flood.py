"""What one visitor waits for while others flood the server.

Each way to flood runs for some seconds in a process of its own, from ten addresses: attacks of several kinds, and the
heaviest lawful request of every kind, endpoint and route (``heaviest``). From another address a visitor draws, has
photos explained, and asks for the server's health, which must never fail. The addresses are those that a reverse proxy
would report (``VIT_DEMO_PROXY=1``).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import math
import os
import re
import secrets
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks import heaviest
from benchmarks.heaviest import JOIN, REQUEST, Send, large_drawing, large_scripts, post, slow_jpeg, upload
from benchmarks.load import Record, Visitor, drawings, loaded_server
from benchmarks.server import Server

VISITOR = {"X-Forwarded-For": "198.51.100.1"}
WHAT = ("drawing", "photo", "health")
"""What the other visitor does."""
_COLUMNS = " | ".join(f"{what} ms: alone | flooded | times" for what in WHAT)
HEAD = f"| flood | requests per s | refused | {_COLUMNS} | lost |\n|---|---:|---:|{'---:|' * 3 * len(WHAT)}---:|"
REST_SECONDS = 12
"""Time after which the server should be as before: streams that nobody opened end after ten."""

Act = Callable[[], Awaitable[Any]]


async def send_raw(
    text: Callable[[int], bytes], seconds: float, client: httpx.AsyncClient, n: int, reads: bool = True
) -> httpx.Response:
    """Sends bytes over a connection of its own, and reads until it ends, or nothing, for some seconds."""
    reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
    reply = b""
    try:
        writer.write(text(n).replace(b"FLOODER", flooder(n, client.headers["addresses"]).encode()))
        async with asyncio.timeout(seconds):
            await writer.drain()
            if not reads:
                assert isinstance(writer.transport, asyncio.Transport)
                writer.transport.pause_reading()
                await asyncio.sleep(seconds)
            while piece := await reader.read(4096):
                reply += piece
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return httpx.Response(int(reply[9:12] or 400))


def flooder(n: int, addresses: str) -> str:
    """One of the addresses, in turn."""
    return f"203.0.113.{1 + n % int(addresses)}"


def ways(digits: Sequence[str]) -> dict[str, tuple[Send, int, float]]:
    """What is sent, by how many connections, and the pause of each in seconds."""

    def drawn(n: int) -> dict[str, Any]:
        """A slow test, of which none equals another for a while."""
        method = ("relevance", "attnlrp", "occlusion", "local_surrogate", "rollout", "attention")[n // 10 % 6]
        return {"image": digits[n // 60 % len(digits)], "preset": "digits-small", "patch_size": 2, "method": method,
                "label": str(n % 10)}  # fmt: skip

    def session(n: int) -> dict[str, Any]:
        return {"data": [], "fn_index": 0, "session_hash": secrets.token_hex(8), "trigger_id": None}

    def model(n: int) -> dict[str, Any]:
        return {"kind": "model", "name": ("vit-s16", "deit-ti16", "vit-b16")[n % 3]}

    lists = '{"data": [' + "[]," * 300_000 + '[]], "fn_index": 0, "session_hash": "x"}'
    canvas = large_drawing()
    chunk = struct.pack(">I4sI", 0, b"abCd", zlib.crc32(b"abCd"))
    large = {"preset": "digits-small", "patch_size": 4, "fit": "crop"}

    start = "HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: FLOODER\r\n"
    join, page = f"POST {JOIN} {start}", f"GET /healthz {start}\r\n".encode()
    slow = f"{join}Content-Length: 1000000\r\n\r\n{{".encode()
    chunks = f"{join}Transfer-Encoding: chunked\r\n\r\n".encode() + b"1\r\n \r\n" * 170_000

    def tool(n: int) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "x" * 900_000}}

    def drawing(n: int, file: bytes = canvas) -> dict[str, Any]:
        # Bytes after the end of the picture, so that no result is in a cache.
        url = f"data:image/png;base64,{base64.b64encode(file + b'%08d' % n).decode()}"
        return {"kind": "result", "source": {**large, "drawing": url}}

    def stream(n: int) -> bytes:
        """Three addresses take all that they may, and 25 what is then left to each: 800 connections."""
        address = f"203.0.113.{n % 3 if n < 600 else 3 + n % 25}"
        return f"GET /gradio_api/heartbeat/{n} {start}\r\n".replace("FLOODER", address).encode()

    many_chunks = partial(drawing, file=canvas[:33] + chunk * 55_000 + canvas[33:])
    photo = f"POST /gradio_api/vit_demo/photo {start}Content-Length: 1000000\r\n\r\n".encode() + bytes(60_000)
    # Nine scripts without compression, of 6 MB in all.
    scripts = b"".join(f"GET /assets/{name} {start}\r\n".encode() for name in large_scripts())

    found: dict[str, tuple[Send, int, float]] = {
        "calls that nobody collects": (partial(post, "/gradio_api/call/v2/faithfulness", drawn), 8, 0.05),
        "photos that are slow to decode": (partial(upload, slow_jpeg()), 6, 1.0),
        "large drawings": (partial(post, REQUEST, drawing), 8, 0.02),
        "JSON of a million brackets": (partial(post, JOIN, lambda _: lists), 8, 0.0),
        "sessions": (partial(post, JOIN, session), 8, 0.0),
        "downloads that are left": (partial(post, REQUEST, model), 3, 0.3),
        "the page": (lambda client, _: client.get("/"), 8, 0.0),
        "slow bodies": (partial(send_raw, lambda n: slow, 15), 64, 0.0),
        "chunks of one byte": (partial(send_raw, lambda n: chunks, 15), 8, 0.0),
        "pipelined requests": (partial(send_raw, lambda n: page * 3000, 5), 8, 0.0),
        "mapped addresses": (partial(post, JOIN, session), 64, 0.0),
        "names of tools": (partial(post, "/gradio_api/mcp/", tool), 4, 0.0),
        "drawings of many chunks": (partial(post, REQUEST, many_chunks), 8, 0.02),
        "idle streams": (partial(send_raw, stream, 15), 800, 0.0),
        "slow uploads": (partial(send_raw, lambda n: photo, 15), 540, 0.0),
        "unread downloads": (partial(send_raw, lambda n: scripts, 15, reads=False), 150, 0.0),
    }  # fmt: skip
    return found | {name: (send, 32, 0.0) for name, send in heaviest.rows().items()}


async def flood(url: str, digits: Sequence[str], way: str, seconds: float, addresses: int = 10) -> list[int]:
    """Floods a server; returns how many requests were sent and how many of them refused."""
    send, connections, pause = ways(digits)[way]
    counts, numbers, turns, until = [0, 0], itertools.count(), itertools.count(), time.monotonic() + seconds

    async def go_on(client: httpx.AsyncClient) -> None:
        while time.monotonic() < until:
            try:
                response = await send(client, next(numbers))
                counts[1] += response.is_error or b'"error"' in response.content
            except httpx.HTTPError:
                counts[1] += 1
            counts[0] += 1
            await asyncio.sleep(pause)

    async def as_one(request: httpx.Request) -> None:
        request.headers["x-forwarded-for"] = "::ffff:" * (way == "mapped addresses") + flooder(
            next(turns), headers["addresses"]
        )

    headers = {"addresses": str(addresses), "accept": "application/json, text/event-stream"}
    hooks = {"request": [as_one]}
    async with httpx.AsyncClient(base_url=url, timeout=60, headers=headers, event_hooks=hooks) as client:
        await asyncio.gather(*(go_on(client) for _ in range(connections)))
    return counts


def resources(server: Server) -> dict[str, float]:
    """What should be as before."""
    folder = Path(f"/proc/{server.process.pid}")
    files = server.num_files
    tasks, descriptors = len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))
    return {"MB": round(server.megabytes), "threads": tasks, "descriptors": descriptors, "files": files}


async def waits(acts: Sequence[Act], seconds: float) -> tuple[list[list[float]], list[str]]:
    """Does each thing again and again, side by side; the seconds that each took, and the errors."""
    took, lost, until = [list[float]() for _ in acts], list[str](), time.monotonic() + seconds

    async def repeat(act: Act, into: list[float]) -> None:
        while time.monotonic() < until:
            started = time.perf_counter()
            try:
                await act()
                into.append(time.perf_counter() - started)
            except Exception as error:
                lost.append(repr(error))
            await asyncio.sleep(0.5)

    await asyncio.gather(*map(repeat, acts, took))
    return took, lost


async def compare(server: Server, digits: Sequence[str], acts: Sequence[Act], options: argparse.Namespace) -> list[str]:
    """Prints a row for each way to flood; returns the errors that the other visitor got."""
    seconds = options.seconds
    chosen = [way for way in ways(digits) if not options.ways or any(re.search(one, way) for one in options.ways)]
    await waits(acts, 5)
    for way in chosen:  # fills the caches, and starts the threads that stay
        await flood(server.url, digits, way, 2)
    await asyncio.sleep(REST_SECONDS)
    before, (alone, errors) = resources(server), await waits(acts, seconds / 2)
    print(f"\nBefore: {before}\n\n{HEAD}")
    for way in chosen:
        arguments = [server.url, way, str(seconds), str(options.addresses), *digits]
        command = ["nice", "-n", "19", sys.executable, "-m", "benchmarks.flood", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
            await asyncio.sleep(3)  # until it has begun
            flooded, lost = await waits(acts, seconds - 3)
            sent, refused = json.loads((await asyncio.to_thread(process.communicate))[0])
        await asyncio.sleep(REST_SECONDS)
        later, more = await waits(acts, seconds / 2)  # alone again: the speed of a shared machine changes
        medians = [
            (median([*one, *two] or [math.nan]), median(three or [math.inf]))
            for one, two, three in zip(alone, later, flooded, strict=True)
        ]
        waited = " | ".join(f"{1000 * one:.0f} | {1000 * two:.0f} | {two / one:.1f}" for one, two in medians)
        print(f"| {way} | {sent / seconds:.0f} | {refused} | {waited} | {len(lost)} |", flush=True)
        errors += [*lost, *more]
        alone = later
    print(f"\nAfterwards: {resources(server)}, before: {before}")
    return errors


async def run(server: Server, options: argparse.Namespace) -> list[str]:
    """Compares a visitor who draws, has photos explained and asks for the health, alone and beside each flood."""
    digits, number = iter(drawings(int(400 * options.seconds))), itertools.count()  # for 120 rows: each is new
    async with httpx.AsyncClient(base_url=server.url, timeout=240, headers=VISITOR) as client:
        visitor = Visitor(server, client, Record())

        async def draw() -> None:
            digit, drawing = next(digits)
            source = {"drawing": drawing, "preset": "digits-small", "patch_size": 4, "fit": "crop"}
            found = await visitor.timed("drawing", {"kind": "result", "source": source})
            if found["predictions"]["labels"][0] != str(digit):
                raise RuntimeError("another digit")

        async def photo() -> None:
            n = next(number)
            await visitor.explain(await visitor.upload(1000 + n % 400, 700 + n // 400), 20)  # each is new

        async def health() -> None:
            (await client.get("/healthz")).raise_for_status()

        return await compare(server, [drawing for _, drawing in drawings(20)], (draw, photo, health), options)


def main() -> None:
    """Prints a row for each way to flood."""
    parser = argparse.ArgumentParser(description="What a visitor waits for while others flood the server.")
    parser.add_argument("--seconds", type=float, default=30, help="of each flood (%(default)s)")
    parser.add_argument("--addresses", type=int, default=10, metavar="N", help="from so many (%(default)s)")
    parser.add_argument("--ways", nargs="*", metavar="WAY", help="only these, such as '^kind map'")
    options = parser.parse_args()
    with loaded_server() as server:
        errors = asyncio.run(run(server, options))
    for message in sorted(set(errors))[:5]:
        print(f"  {message}")


if __name__ == "__main__":  # the flooder, in a process of its own
    url, chosen, duration, count, *pictures = sys.argv[1:]
    print(json.dumps(asyncio.run(flood(url, pictures, chosen, float(duration), int(count)))))
