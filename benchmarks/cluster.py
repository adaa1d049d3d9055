"""The page on Ray Serve: throughput by the number of model replicas, and what a killed replica costs.

Needs the extra ``serve``. All replicas share this machine, so more of them are faster only while cores are idle.
Every visitor draws new digits one after the other, and checks each answer; a request that fails is sent again, as the
page does, and counted. CPU time for each answer depends little on what else the machine does; it is left out where a
replica is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

# On a busy machine Serve's proxy needs longer than by default; read when Ray is imported.
os.environ |= {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60", "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60"}

import ray
from ray import serve

from benchmarks.load import drawings
from benchmarks.server import Server, cpu_seconds_of, free_port
from vit_demo.serve import Options, app

NAME = "vit_demo"

ROLES = {
    "page": f"ray::ServeReplica:{NAME}:Page",
    "models": f"ray::ServeReplica:{NAME}:Models",
    "proxy": "ray::ProxyActor",
}
"""What the titles of the processes begin with."""


@dataclass
class Load:
    """What the visitors of one run met.

    Attributes:
        seconds: From request to right answer, repeated requests included, for each drawing.
        failures: Requests that failed and were sent again.
        wrong: Drawings whose prediction was not the digit.
        elapsed: Length of the run in seconds.
    """

    seconds: list[float] = field(default_factory=list)
    failures: int = 0
    wrong: int = 0
    elapsed: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """Answers a second, quantiles of the time to an answer, failures."""
        cuts = statistics.quantiles(self.seconds, n=20)
        return {
            "answers": len(self.seconds),
            "per_second": round(len(self.seconds) / self.elapsed, 2),
            "p50": round(cuts[9], 3),
            "p95": round(cuts[18], 3),
            "longest": round(max(self.seconds), 3),
            "failed_requests": self.failures,
            "wrong": self.wrong,
        }


class Cluster:
    """Ray and Serve on this machine; closed with ``close``.

    Args:
        cpus: Cores that Ray may count with; more than there are, so that all replicas find room.
    """

    def __init__(self, cpus: int = 6) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": port})

    def deploy(self, **options: Any) -> None:
        """Starts the application, or changes its number of replicas."""
        options.setdefault("model_cpus", 1)
        serve.run(app(Options(**options)), name=NAME)

    def replicas(self, deployment: str) -> list[str]:
        """The names of the actors that are the replicas of a deployment."""
        prefix = f"SERVE_REPLICA::{NAME}#{deployment}#"
        names = [one["name"] for one in ray.util.list_named_actors(all_namespaces=True)]
        return sorted(name for name in names if name.startswith(prefix))

    def kill_one(self, deployment: str) -> None:
        """Kills a replica of a deployment at once, without telling Serve."""
        ray.kill(ray.get_actor(self.replicas(deployment)[0], namespace="serve"))

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time so far of the page replicas, the model replicas and Ray's HTTP proxy (Linux)."""
        found = dict.fromkeys(ROLES, 0.0)
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                title = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
                used = cpu_seconds_of(folder.name)
            except (OSError, UnicodeDecodeError):
                continue  # it has ended
            for role, start in ROLES.items():
                if title.startswith(start):
                    found[role] += used
        return found

    def close(self) -> None:
        """Stops everything."""
        serve.shutdown()
        ray.shutdown()


async def draw(
    url: str, visitors: int, seconds: float, during: Callable[[], None] | None = None, think: float = 0.0
) -> Load:
    """Lets visitors draw for some seconds.

    Args:
        url: Of the page.
        visitors: How many, each with a session of its own.
        seconds: How long.
        during: Called in a thread after a third of the time.
        think: Seconds between two drawings of a visitor.
    """
    load, digits = Load(), iter(drawings(int(seconds * 120)))
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=2 * visitors)) as client:
        end = time.perf_counter() + seconds

        async def send(headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
            while True:
                try:
                    reply = await client.post(f"{url}/gradio_api/vit_demo/request", json=body, headers=headers)
                    if reply.status_code == 200:
                        found = reply.json()
                        if "done" not in found:
                            return found
                        continue
                except httpx.HTTPError:
                    pass
                load.failures += 1
                await asyncio.sleep(0.2)

        async def visit(number: int) -> None:
            headers = {"x-session-id": f"visitor-{number}"}
            while time.perf_counter() < end:
                digit, drawing = next(digits)
                source = {"drawing": drawing, "preset": "digits-small", "patch_size": 4, "fit": "crop"}
                body = {"kind": "result", "source": source}
                started = time.perf_counter()
                found = await send(headers, body)
                load.seconds.append(time.perf_counter() - started)
                predictions = found.get("result", {}).get("predictions")
                load.wrong += not predictions or predictions["labels"][0] != str(digit)
                await asyncio.sleep(think)

        async def interfere() -> None:
            if during is not None:
                await asyncio.sleep(seconds / 3)
                await asyncio.to_thread(during)

        started = time.perf_counter()
        await asyncio.gather(interfere(), *map(visit, range(visitors)))
        load.elapsed = time.perf_counter() - started
    return load


def main() -> None:
    """Prints one JSON object for each run."""
    parser = argparse.ArgumentParser(description="The page on Ray Serve, by the number of replicas.")
    parser.add_argument("--models", default="1,2,4", metavar="N[,N]", help="model replicas (%(default)s)")
    parser.add_argument("--visitors", type=int, default=16, metavar="N", help="visitors (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, metavar="N", help="length of a run (%(default)s)")
    options = parser.parse_args()

    def run(
        what: str, url: str, cpu_seconds: Callable[[], dict[str, float]], during: Callable[[], None] | None = None
    ) -> None:
        before = cpu_seconds()
        load = asyncio.run(draw(url, options.visitors, options.seconds, during))
        cpu = {
            role: round(1000 * (after - before[role]) / len(load.seconds), 1) for role, after in cpu_seconds().items()
        }
        more = {"cpu_ms_per_answer": cpu if during is None else None, "load_average": round(os.getloadavg()[0], 1)}
        print(json.dumps({"run": what, **load.to_dict(), **more}), flush=True)

    server = Server()
    try:
        asyncio.run(draw(server.url, options.visitors, 3))  # not counted
        run("one process, without Ray", server.url, lambda: {"server": cpu_seconds_of(server.process.pid)})
    finally:
        server.stop()
    started = time.perf_counter()
    cluster = Cluster()
    try:
        for count in map(int, options.models.split(",")):
            cluster.deploy(models=count)
            print(json.dumps({"ready_after": round(time.perf_counter() - started, 1)}), flush=True)
            asyncio.run(draw(cluster.url, options.visitors, 3))  # not counted
            run(f"{count} model replicas", cluster.url, cluster.cpu_seconds)
        cluster.deploy(models=2)
        run("2 model replicas, one killed", cluster.url, cluster.cpu_seconds, lambda: cluster.kill_one("Models"))
        cluster.deploy(models=2, pages=2)
        run("2 page replicas, one killed", cluster.url, cluster.cpu_seconds, lambda: cluster.kill_one("Page"))
    finally:
        cluster.close()
