"""Ports for servers that tests start, and when they are there."""

import random
import socket
import time
from pathlib import Path
from subprocess import Popen
from urllib.request import urlopen

import pytest

UNASSIGNED = range(20_000, 30_000)
"""Below the ports that the system gives to clients: one of those could be taken again before the server listens."""


def first_free(*ports: int) -> int:
    """The first port that can be bound, or any other."""
    for port in (*ports, *random.sample(UNASSIGNED, 100)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise OSError("no port is free")


def wait_for(address: str, process: "Popen[bytes]", log: Path) -> None:
    """Waits until the page of a process is served; its log is the message if the process ends instead."""
    for _ in range(1800):
        try:
            urlopen(f"{address}/healthz").close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)


@pytest.fixture(scope="module")
def free_port() -> int:
    """Any port that nothing listens on."""
    return first_free()


@pytest.fixture(scope="module")
def space_port() -> int:
    """The port of a Space, or another one where that is taken."""
    return first_free(7860)
