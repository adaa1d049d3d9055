"""Starting and stopping the server: ports, signals, damaged checkpoints."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from vit_demo.cli import main
from vit_demo.errors import BusyError
from vit_demo.service.engine import _engines, get_engine
from vit_demo.service.job_limits import POOLS
from vit_demo.service.jobs import SHUTTING_DOWN, JobRunner
from vit_demo.web import server
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import uploads
from vit_demo.web.page import build_page
from vit_demo.web.requests.payload import data_url
from vit_demo.weights.checkpoints import BUNDLED, load_model

from ..asynchronous import PATIENCE, at_once, run, until
from ..replies import handle, unpack
from ..servers import ROOT, free_port, start, wait_for

SLOW = """
import gc
import os
import pathlib
import time
from vit_demo import methods
from vit_demo.service.job import report
from vit_demo.web import server
from dataclasses import replace

# So late that only the last request of a visitor lets it end.
server.ACCEPTING_SECONDS, server.SHUTDOWN_SECONDS, server.END_SECONDS, server.KILL_SECONDS = 600.0, 610.0, 620.0, 630.0

def wait(*_, **__):
    assert gc.isenabled() and gc.get_freeze_count() > 100_000, "every full collection would take long"
    while not pathlib.Path(os.environ["GO_ON"]).exists():
        report(1, 2)
        time.sleep(0.01)
    raise methods.registry.InputError("This took its time.")

wait.__wrapped__ = methods.METHODS["occlusion"].function
methods.METHODS["occlusion"] = replace(methods.METHODS["occlusion"], function=wait)
gc.disable()
server.launch()
"""


def open_url(port: int, path: str) -> Any:
    return urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE)


def get(port: int, path: str) -> bytes:
    with open_url(port, path) as response:
        return response.read()


def post(port: int, path: str, body: dict) -> dict:
    headers = {"Content-Type": "application/json"}
    with urlopen(
        Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), headers), timeout=PATIENCE
    ) as response:
        assert response.headers["content-encoding"] == "gzip"
        return unpack(response.read())


@pytest.fixture
def stop() -> Iterator[list[subprocess.Popen]]:
    """Processes that end with the test, whatever happens."""
    running: list[subprocess.Popen] = []
    yield running
    for process in running:
        process.kill()
        process.wait()


def prints(process: subprocess.Popen[str], words: str) -> bool:
    """Whether a process prints these words, while it goes on."""
    printed, file = "", process.stdout.fileno()
    while words not in printed and select.select([file], [], [], PATIENCE)[0]:
        if not (more := os.read(file, 65536)):
            return False
        printed += more.decode()
    return words in printed


def test_a_port_in_use_is_an_error(capsys, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("GRADIO_SERVER_PORT", str(port))
        for arguments in (["serve"], ["serve", "--port", str(port)]):
            assert main(arguments) == 2
            error = capsys.readouterr().err
            assert f"Port {port} cannot be used" in error and error.count("\n") == 1
    assert main(["serve", "--port", "99999"]) == 2 and "is not a valid port" in capsys.readouterr().err


def test_no_part_of_a_reply_waits_for_an_acknowledgement():
    with server._listen("127.0.0.1", free_port()) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_no_garbage_is_collected_while_the_server_starts(monkeypatch):
    enabled = []
    monkeypatch.setattr("vit_demo.web.server.launch", lambda *_: enabled.append(gc.isenabled()))
    assert main(["serve"]) == 0
    assert enabled == [False] and gc.isenabled()


def test_a_server_without_visitors_leaves_the_processor_alone() -> None:
    queue = server.asgi_app().state.page._queue
    asleep: list[float] = []

    class Loop(asyncio.SelectorEventLoop):
        """Notes who sleeps on it, and for how long; those who sleep elsewhere in this process are other tests'."""

        def call_later(self, delay: float, *given: Any, **options: Any) -> asyncio.Handle:  # type: ignore[override]
            asleep.append(delay)
            queue.stopped = True
            return self.call_soon(*given, **options)

    async def idle() -> None:
        for loop in (queue.start_processing, queue.start_progress_updates):
            queue.stopped = False
            await loop()

    def with_own_loop() -> None:
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(idle())

    at_once(with_own_loop)
    assert len(asleep) == 2 and min(asleep) >= 0.02, "Gradio's queue looks for events a thousand times a second"


def test_a_stopped_server_ends_before_docker_kills_it() -> None:
    steps = [0, server.ACCEPTING_SECONDS, server.SHUTDOWN_SECONDS, server.END_SECONDS, server.KILL_SECONDS, 10]
    assert steps == sorted(steps)


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or sys.platform == "win32", reason="needs signals of POSIX")
def test_a_server_that_is_stopped_finishes_requests_ends_training_and_deletes_uploads(stop, tmp_path):
    port = free_port()
    go_on, temporary = tmp_path / "go on", tmp_path / "temporary"
    temporary.mkdir()
    process = start(port, "-c", SLOW, GRADIO_TEMP_DIR=str(temporary), GO_ON=str(go_on), PYTHONUNBUFFERED="")
    stop.append(process)
    wait_for(port, process)
    assert prints(process, f"http://127.0.0.1:{port}/"), "also where nobody reads a terminal, as in the logs of Docker"
    config = json.loads(get(port, "/config"))
    stage = next(c for c in config["components"] if c["props"].get("elem_id") == "stage")
    request = {"kind": "map", "method": "occlusion", "source": stage["props"]["value"]["source"]}
    send = partial(post, port, "/gradio_api/vit_demo/request")
    network = {"image_size": 28, "patch_size": 7, "in_channels": 1, "num_classes": 10, "embed_dim": 32, "depth": 1,
               "num_heads": 2, "mlp_ratio": 2.0}  # fmt: skip
    train = {"kind": "train", "begin": {"config": network, "seconds": 60}}
    training = {"kind": "train", "run": send(train)["result"]["run"]}
    until(lambda: send(training)["result"]["state"] == "running")
    assert "done" in send(request)

    def send_until_done() -> dict:
        reply: dict = {"done": 0}
        while "done" in reply:
            reply = send(request)
        return reply

    assert list(temporary.glob("vit_demo-*"))
    with ThreadPoolExecutor(1) as pool, open_url(port, "/gradio_api/heartbeat/abc") as idle:
        visitor = pool.submit(send_until_done)
        assert idle.readline()
        process.send_signal(signal.SIGTERM)
        until(lambda: "error" in send(training))
        assert "shutting down" in send(training)["error"], "it waits for no training"
        assert status(port, "/readyz") == 503 and status(port, "/healthz") == 200
        other = {**request, "kind": "logit_lens"}
        assert "result" in send(other), "a proxy has not seen it yet"
        assert process.poll() is None and not visitor.done(), "it waits for the visitor"
        go_on.touch()
        assert visitor.result() == {"error": "This took its time."}
        assert process.wait(PATIENCE) == 0, "and no longer"
    assert not list(temporary.glob("vit_demo-*")), "uploads are deleted when the process ends"


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or sys.platform == "win32", reason="needs signals of POSIX")
def test_a_server_that_is_stopped_ends_although_no_thread_of_python_can_run(stop):
    program = """
import ctypes
import os
import signal
from vit_demo.service.jobs import JobRunner
from vit_demo.web import server

server.KILL_SECONDS = 1.0
JobRunner.close = lambda *_: ctypes.PyDLL(None).sleep(3600)  # which keeps the interpreter's lock
begin = server.Server.run_in_thread
server.Server.run_in_thread = lambda self: (begin(self), os.kill(os.getpid(), signal.SIGTERM))  # as soon as it answers
server.launch()
"""
    process = start(free_port(), "-c", program)
    stop.append(process)
    assert process.wait(PATIENCE) == 1 and "in launch" in process.stdout.read(), "it says where its threads are"


def status(port: int, path: str) -> int:
    """The status of a response, whatever it is."""
    try:
        with open_url(port, path) as response:
            return response.status
    except HTTPError as error:
        return error.code


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or sys.platform == "win32", reason="needs signals of POSIX")
def test_uvicorn_opens_many_files_ends_although_a_page_is_open_and_deletes_uploads(stop, tmp_path):
    commands = re.findall(
        r"^python -m uvicorn (.+)$", (ROOT / "docs/hosting.md").read_text().replace("\\\n", " "), re.MULTILINE
    )
    (command,) = [each for each in commands if "--timeout-graceful-shutdown" in each]
    port = free_port()
    arguments = re.sub(r"(?<=--timeout-graceful-shutdown )\d+", "1", command).split()
    program = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 5000))\n"
    program += f"import uvicorn; uvicorn.main({[*arguments, '--port', str(port)]!r})"
    process = start(port, "-c", program, GRADIO_TEMP_DIR=str(tmp_path))
    stop.append(process)
    wait_for(port, process)
    if sys.platform.startswith("linux"):
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert re.search(r"Max open files +5000 +5000", limits), "as many as the system allows"
    (folder,) = tmp_path.glob("vit_demo-*")
    (folder / "photo.png").write_text("a face")
    with open_url(port, "/gradio_api/heartbeat/abc") as opened:
        assert opened.readline().startswith(b"data: ALIVE")
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    assert [path.name for path in folder.iterdir()] == [uploads.LOCK]


@pytest.fixture
def patient(monkeypatch):
    """Workers of a busy machine answer late, and begin late with jobs for which nobody waits."""
    monkeypatch.setattr(server, "HEALTH_SECONDS", PATIENCE)
    monkeypatch.setattr("vit_demo.service.job.GRACE", PATIENCE)


def test_a_server_whose_workers_hang_is_not_healthy(page, patient, monkeypatch):
    assert status(page.server_port, "/healthz") == 200
    go_on = threading.Event()
    job = get_engine().jobs.submit(None, go_on.wait, "digits")
    until(lambda: job.seconds_so_far > 0)
    monkeypatch.setattr("vit_demo.service.job.QUICK_STUCK_SECONDS", 0.0)
    assert status(page.server_port, "/healthz") == 503 and status(page.server_port, "/readyz") == 200
    go_on.set()
    assert job.result()
    until(lambda: status(page.server_port, "/healthz") == 200)


def test_a_server_whose_threads_do_not_answer_is_not_healthy(page, monkeypatch):
    monkeypatch.setattr(server, "HEALTH_SECONDS", 0.2)
    go_on = threading.Event()
    job = get_engine().jobs.submit("another", go_on.wait, "health")
    assert status(page.server_port, "/healthz") == 503
    go_on.set()
    assert job.result()
    monkeypatch.undo()
    assert status(page.server_port, "/healthz") == 200


def test_a_server_is_not_healthy_while_one_worker_of_any_kind_is_stuck(page, patient, monkeypatch):
    go_on = threading.Event()
    job = get_engine().jobs.submit(None, go_on.wait, "slow")
    until(lambda: job.seconds_so_far > 0)
    assert status(page.server_port, "/healthz") == 200
    monkeypatch.setattr("vit_demo.service.job.STUCK_SECONDS", 0.0)
    assert status(page.server_port, "/healthz") == 503
    go_on.set()
    assert job.result()
    until(lambda: status(page.server_port, "/healthz") == 200)


def test_a_server_is_healthy_while_all_that_visitors_can_take_is_taken(page, patient):
    go_on, runner, held = threading.Event(), get_engine().jobs, []
    visitors = {name: pool for name, pool in POOLS.items() if name != "health"}
    for name, pool in visitors.items():
        held += [runner.submit(None, go_on.wait, name) for _ in range(pool.workers)]
        until(lambda name=name: runner.queues[name].count() == 0)
        held += [runner.submit(None, lambda: True, name) for _ in range(pool.waiting)]
        with pytest.raises(BusyError):
            runner.submit(None, lambda: True, name)
    assert status(page.server_port, "/healthz") == 200
    go_on.set()
    assert all(job.result() for job in held)


def test_products_of_a_server_wait_for_no_other_threads():
    """The threads of numpy's products wait for each other, on a busy machine thirty times as long as they compute."""
    program = """
import os, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "numpy":
            sys.exit(os.environ.get("OPENBLAS_NUM_THREADS") != "1")
sys.meta_path.insert(0, Finder())
import vit_demo.web.server
"""
    given = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    program += 'raise AssertionError("it imports no numpy")\n'
    assert subprocess.run([sys.executable, "-c", program], env=given, check=False).returncode == 0


def test_a_server_that_stops_is_not_said_to_hang(monkeypatch):
    monkeypatch.setattr(get_engine(), "jobs", jobs := JobRunner())
    jobs.close()
    reply = run(server.healthz(None))
    assert (reply.status_code, json.loads(reply.body)) == (503, {"status": SHUTTING_DOWN})


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """Checkpoints of which two are cut off, and a new engine that loads them."""
    folder = tmp_path / "checkpoints"
    shutil.copytree(BUNDLED, folder)
    for name in ("photos-tiny", "digits-small"):
        path = folder / f"{name}.safetensors"
        path.write_bytes(path.read_bytes()[:-1000])
    monkeypatch.setattr("vit_demo.inference.networks.load_model", partial(load_model, folder=folder))
    _engines.clear()
    yield
    _engines.clear()


def test_a_damaged_checkpoint_is_a_message_and_the_rest_works(damaged):
    page = build_page()
    stage = next(block.value for block in page.blocks.values() if block.elem_id == "stage")
    assert stage["empty"] and re.search(r"digits-small.*(damaged|download)", stage["message"])

    def reply(preset: str) -> dict:
        source = {"drawing": data_url(example_picture(3)), "preset": preset, "patch_size": 4, "fit": "crop"}
        while "done" in (found := handle({"kind": "result", "source": source})):
            pass
        return found

    assert reply("digits-tiny")["result"]["predictions"]["labels"][0] == "3"
    assert re.search(r"digits-small.*damaged", reply("digits-small")["error"])
