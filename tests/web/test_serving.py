"""The server as a process: ports, signals, broken checkpoints, health."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from vit_demo.cli import main
from vit_demo.web.components.pad import example_picture, to_data_url

ROOT = Path(__file__).parents[2]
SLOW = """
import time
from vit_demo import methods
from vit_demo.web import launch
from dataclasses import replace

def wait(*_, **__):
    time.sleep(1.5)
    raise methods.registry.InputError("This took its time.")

wait.__wrapped__ = methods.METHODS["occlusion"].compute
methods.METHODS["occlusion"] = replace(methods.METHODS["occlusion"], compute=wait)
launch()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(port: int, *arguments: str, **settings: str) -> subprocess.Popen:
    environment = {
        **os.environ,
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        **settings,
    }
    command = [sys.executable, *(arguments or ["app.py"])]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def get(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read()


def post(port: int, path: str, body: dict) -> dict:
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), headers), timeout=30) as answer:
        return json.load(answer)


def wait_for(port: int, process: subprocess.Popen) -> None:
    for _ in range(600):
        try:
            get(port, "/healthz")
            return
        except OSError:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.1)
    raise AssertionError("it did not start")


@pytest.fixture
def stop() -> Iterator[list[subprocess.Popen]]:
    """Processes that end with the test, whatever happens."""
    running: list[subprocess.Popen] = []
    yield running
    for process in running:
        process.kill()
        process.wait()


def test_a_port_that_is_taken_is_said_and_not_exchanged(stop, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start(port)
        stop.append(process)
        said = process.communicate(timeout=120)[0]
        assert process.returncode == 2 and f"Port {port} cannot be used" in said and "Traceback" not in said
        assert main(["serve", "--port", str(port)]) == 2
        assert f"Port {port} cannot be used" in capsys.readouterr().err
    assert main(["serve", "--port", "99999"]) == 2 and "is not a port" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or sys.platform == "win32", reason="needs signals of POSIX")
def test_a_server_that_is_told_to_stop_finishes_its_answers_and_leaves_nothing(stop, tmp_path):
    port = free_port()
    process = start(port, "-c", SLOW, GRADIO_TEMP_DIR=str(tmp_path))
    stop.append(process)
    wait_for(port, process)
    config = json.loads(get(port, "/config"))
    stage = next(c for c in config["components"] if c["props"].get("elem_id") == "stage")
    about = {"about": "map", "method": "occlusion", "source": stage["props"]["value"]["source"]}
    body = {"data": about, "component_id": stage["id"], "fn_name": "ask", "session_hash": "x"}
    assert "done" in post(port, "/gradio_api/component_server", body)
    answers: list[dict] = []

    def ask() -> None:
        said: dict = {"done": 0}
        while "done" in said:
            said = post(port, "/gradio_api/component_server", body)
        answers.append(said)

    visitor = threading.Thread(target=ask)
    visitor.start()
    time.sleep(0.5)
    assert list(tmp_path.glob("vit_demo-*"))
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    other = {**body, "data": {**about, "about": "logit_lens"}}
    assert "shutting down" in post(port, "/gradio_api/component_server", other)["error"]
    visitor.join(60)
    assert answers == [{"error": "This took its time."}]
    assert process.wait(60) == 0
    assert not list(tmp_path.glob("vit_demo-*")), "visitors' files do not outlive the process"


def test_a_broken_checkpoint_is_one_sentence_and_the_rest_works(stop, tmp_path):
    package = tmp_path / "here"
    package.mkdir()
    for name in ("vit_demo", "docs", "checkpoints"):
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", package)
    for broken in ("photos-tiny", "digits-small"):
        path = package / "checkpoints" / f"{broken}.safetensors"
        path.write_bytes(path.read_bytes()[:-1000])
    port = free_port()
    process = start(port, str(package / "app.py"), PYTHONPATH=str(package))
    stop.append(process)
    wait_for(port, process)
    config = json.loads(get(port, "/config"))
    opening = next(c["props"]["value"] for c in config["components"] if c["props"].get("elem_id") == "stage")
    assert opening["empty"] and re.search(r"digits-small.*(damaged|fetch)", opening["message"])
    event = next(d["id"] for d in config["dependencies"] if any(t[1] == "input" for t in d["targets"]))
    for name, works in (("digits-tiny", True), ("digits-small", False)):
        data = [to_data_url(example_picture(3)), None, name, "4", "crop"]
        post(port, "/gradio_api/queue/join", {"fn_index": event, "data": data, "session_hash": name})
        said = get(port, f"/gradio_api/queue/data?session_hash={name}").decode()
        assert ('"label":"3"' in said.replace(" ", "")) is works and "Traceback" not in said
        assert works or "damaged" in said
