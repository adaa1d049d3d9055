"""Disks that are full or cannot be written: one sentence, and the server goes on."""

import errno
import os
from pathlib import Path

import gradio.processing_utils
import httpx
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from vit_demo.cli import main
from vit_demo.web.guard import uploads
from vit_demo.web.requests.routes import NOT_STORED

from ...asynchronous import PATIENCE


@pytest.mark.parametrize("sent", [{"files": {"files": ("photo.png", b"the bytes")}}, {"content": b"the bytes"}])
def test_an_upload_onto_a_full_disk_gets_a_sentence(page, monkeypatch, sent):
    path = "upload" if "files" in sent else "vit_demo/photo"

    put = Path.replace

    def full(path: Path, *target: Path) -> Path:
        if not path.is_relative_to(uploads.folder()):
            return put(path, *target)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def upload() -> httpx.Response:
        return httpx.post(f"{page.local_url}gradio_api/{path}", **sent, timeout=PATIENCE)

    before = set(uploads.folder().iterdir())
    with monkeypatch.context() as context:
        context.setattr(Path, "replace", full)
        response = upload()
    assert {path for path in uploads.folder().iterdir() if not path.is_dir() or any(path.iterdir())} <= before
    assert response.status_code == 507 and response.json()["error"] == NOT_STORED
    assert "content-security-policy" in response.headers
    assert upload().status_code == 200, "once there is room, uploads work again"


def test_an_overlay_onto_a_full_disk_gets_a_sentence(page, three, monkeypatch):
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    client = Client(page.local_url, verbose=False)
    arguments = (handle_file(three), "digits-tiny", 7, "rollout", -1, -1, -1, -1, "")
    with monkeypatch.context() as context:
        context.setattr(gradio.processing_utils, "save_pil_to_cache", full)
        with pytest.raises(AppError, match="disk is full"):
            client.predict(*arguments, api_name="/overlay")
    assert client.predict(*arguments, api_name="/overlay")


@pytest.mark.parametrize("base", ["/dev/null/uploads", "/proc/uploads"])
def test_a_temporary_folder_that_cannot_be_written_is_an_error(monkeypatch, capsys, base):
    monkeypatch.setattr(uploads, "_folder", None)
    monkeypatch.setenv("GRADIO_TEMP_DIR", base)
    assert main(["serve"]) == 2
    error = capsys.readouterr().err
    assert f"cannot be stored in {base} (" in error and "GRADIO_TEMP_DIR" in error and error.count("\n") == 1
