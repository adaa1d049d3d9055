"""The app on ZeroGPU, with the real ``spaces`` package and its forks; the service that lends GPUs is a stand-in."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import gradio
import numpy as np
import pytest
from gradio_client import Client, handle_file
from huggingface_hub import SpaceCard

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture

from ..replies import check_teaching
from ..servers import wait_for
from .device_api import device_api

ROOT = Path(__file__).parents[2]
LION = Path(gradio.__file__).parent / "media_assets" / "images" / "lion.jpg"

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("spaces") is None, reason="needs the package `spaces`"),
    pytest.mark.skipif(sys.platform != "linux", reason="ZeroGPU forks on Linux"),
]


@pytest.fixture(scope="module")
def space(tmp_path_factory, free_port):
    """The address of a running Space, its process, and the requests to the service that lends GPUs."""
    suggested = SpaceCard((ROOT / "README.md").read_text(encoding="utf-8")).data["suggested_hardware"]
    assert suggested == "zero-a10g", "this is the hardware that the Space asks for"
    folder = tmp_path_factory.mktemp("zero")
    (folder / "cgroup").write_text("1:devices:/a\n0::/b\n")
    with device_api() as (api, requests):
        settings = {
            "SYSTEM": "spaces",
            "SPACE_ID": "someone/vit_demo",
            "SPACES_ZERO_GPU": "true",
            "SPACES_ZERO_DEVICE_API_URL": api,
            "ZEROGPU_PROC_SELF_CGROUP_PATH": str(folder / "cgroup"),
            "GRADIO_SERVER_NAME": "127.0.0.1",
            "GRADIO_SERVER_PORT": str(free_port),
            "GRADIO_ANALYTICS_ENABLED": "False",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
        }
        log = (folder / "log").open("w+")
        process = subprocess.Popen(
            [sys.executable, "tests/space/zero_gpu_app.py"],
            cwd=ROOT,
            env=os.environ | settings,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        address = f"http://127.0.0.1:{free_port}"
        try:
            wait_for(free_port, process, folder / "log")
            yield address, process, requests
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the fork, too
            process.wait()
            log.close()


def test_small_networks_run_in_this_process_and_large_ones_in_a_fork_with_a_lent_gpu(space, tmp_path):
    address, process, requests = space
    assert [path for path, _ in requests] == ["/startup-report"], "Spaces refuse an app that declares no GPU function"
    client = Client(address, verbose=False)
    example_picture(3).save(tmp_path / "three.png")
    digit = client.predict(handle_file(tmp_path / "three.png"), "digits-small", 4, api_name="/predict")
    assert digit["label"] == "3"
    assert len(requests) == 1, "a digit costs no quota"

    for method, label in (("relevance", ""), ("attnlrp", "goldfish")):
        arguments = (handle_file(LION), "photos-tiny", 0, method, -1, -1, -1, -1, label)
        found = client.predict(*arguments, api_name="/explain")
        expected = vit_demo.explore(LION, "photos-tiny").heatmap(method, label or None)
        np.testing.assert_allclose(found["map"], expected, atol=1e-4)
    asked = [path for path, _ in requests[1:]]
    assert asked == ["/schedule", "/allow", "/release", *["/schedule", "/release"] * 2], "one fork, three passes"
    allowed = next(parameters for path, parameters in requests if path == "/allow")
    assert int(allowed["pid"]) != process.pid
    assert all(parameters.get("fail") == "false" for path, parameters in requests if path == "/release")
    assert all(parameters["durationSeconds"] == "15" for path, parameters in requests if path == "/schedule")

    check_teaching(address)
    lent = [path for path, _ in requests[1 + len(asked) :]]
    assert lent == ["/schedule", "/release"] * 5, "a pass for each of four examples, and one to explain"
