"""The app starts as on a Space: its environment and port, only the requirements, nothing writable but the caches."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from vit_demo.web.catalog.example_digits import example_picture

from ..asynchronous import PATIENCE
from ..distributions import importable_names_beyond
from ..servers import wait_for

ROOT = Path(__file__).parents[2]
READ_ONLY = "mount -o remount,bind,ro /"


def can_remount() -> bool:
    """Whether this process may give a child a read-only view of the disk."""
    command = ["unshare", "-m", "sh", "-c", READ_ONLY]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def hidden_packages() -> list[str]:
    """The importable names that only development needs."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return importable_names_beyond(line for line in lines if line.strip())


@pytest.fixture(scope="module")
def space(tmp_path_factory, space_port):
    """The address of the running app, and its log."""
    if not can_remount():
        pytest.skip("a child process cannot be given a read-only file system here")
    folder = tmp_path_factory.mktemp("space")
    site, home, cache, temporary = (folder / name for name in ("site", "home", "cache", "tmp"))
    for one in (site, home, cache, temporary):
        one.mkdir()
    shutil.copy(Path(__file__).with_name("as_a_space.py"), site / "sitecustomize.py")
    hidden = hidden_packages()
    assert {"vit_pytorch", "pytest"} <= set(hidden) and not {"torch", "gradio", "PIL", "vit_demo"} & set(hidden)
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(cache),
        "TMPDIR": str(temporary),
        "SYSTEM": "spaces",
        "SPACE_ID": "someone/vit_demo",
        "SPACE_HOST": "someone-vit-demo.hf.space",
        "SPACE_AUTHOR_NAME": "someone",
        "SPACE_REPO_NAME": "vit_demo",
        "GRADIO_SERVER_NAME": "0.0.0.0",
        "GRADIO_SERVER_PORT": str(space_port),
        "GRADIO_SSR_MODE": "True",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(site),
        "HIDDEN_PACKAGES": " ".join(hidden),
    }
    mounts = " && ".join([READ_ONLY, *(f"mount -t tmpfs tmpfs {one}" for one in (cache, temporary))])
    start = f"{mounts} && exec {sys.executable} app.py"
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", start], cwd=ROOT, env=settings, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{space_port}"
        try:
            wait_for(space_port, process, folder / "log")
            yield address, folder / "log"
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


def post(address: str, body: bytes, content: str = "application/json") -> object:
    with urlopen(Request(address, body, {"Content-Type": content})) as answer:
        return json.load(answer)


def test_it_serves_strangers_through_the_guard(space):
    address, log = space
    with urlopen(f"{address}/") as page:
        assert "frame-ancestors 'self' https://huggingface.co" in page.headers["content-security-policy"]
        assert b"vit_demo" in page.read()
    with urlopen(f"{address}/healthz") as answer:
        assert json.load(answer)["device"].startswith("CPU")
    with urlopen(f"{address}/config") as answer:
        config = json.load(answer)
    assert config["space_id"] == "someone/vit_demo"
    assert f'File "{ROOT / "vit_demo"}' not in log.read_text(), "an error of ours was logged"


def test_a_picture_is_uploaded_and_explained_though_nothing_else_can_be_written(space, tmp_path):
    address, log = space
    example_picture(3).save(tmp_path / "three.png")
    body = b'--b\r\nContent-Disposition: form-data; name="files"; filename="three.png"\r\n\r\n'
    body += (tmp_path / "three.png").read_bytes() + b"\r\n--b--\r\n"
    (path,) = post(f"{address}/gradio_api/upload", body, "multipart/form-data; boundary=b")
    arguments = [{"path": path, "meta": {"_type": "gradio.FileData"}}, "digits-tiny", 4]
    event = post(f"{address}/gradio_api/call/predict", json.dumps({"data": arguments}).encode())["event_id"]
    with urlopen(f"{address}/gradio_api/call/predict/{event}") as answer:
        said = answer.read().decode()
    assert said.startswith("event: complete") and '"label": "3"' in said
    refused = [line for line in log.read_text().splitlines() if "Read-only file system" in line]
    assert all("matplotlib" in line for line in refused), "matplotlib turns to the temporary folder by itself"
