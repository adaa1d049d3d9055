"""Uploads: who may store how much, and for how long."""

import fcntl
import hashlib
import json
import os
import secrets
import select
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.web import server
from vit_demo.web.guard import security, uploads
from vit_demo.web.guard.bodies import RequestRefused
from vit_demo.web.guard.quota import Pace
from vit_demo.web.guard.security import UPLOAD_FILE_BYTES
from vit_demo.web.server import asgi_app

from ...asynchronous import until
from ..http_requests import connect, png, request, upload


def send_photo(page, data: bytes) -> str:
    """Sends a photo as the page does; returns its path."""
    status, _, reply = request(page, "POST", "/gradio_api/vit_demo/photo", data)
    assert status == 200
    return json.loads(reply)["path"]


def test_a_photo_of_the_page_is_bounded_by_file_and_by_address(page, monkeypatch):
    assert Path(send_photo(page, png())).read_bytes() == png()
    status, _, reply = request(
        page, "POST", "/gradio_api/vit_demo/photo", b"0" * (MAX_PICTURE_BYTES + security.FORM_BYTES + 1)
    )
    assert status == 413 and b"send a smaller copy" in reply
    monkeypatch.setattr("vit_demo.web.guard.security.UPLOAD_FILE_BYTES", 400_000_000)
    status, _, reply = request(page, "POST", "/gradio_api/vit_demo/photo", png())
    assert status == 429 and b"try again later" in reply


def test_a_photo_that_breaks_off_leaves_nothing(page, capfd):
    def stored() -> list[list[str]]:
        return [sorted(folders + files) for _, folders, files in os.walk(uploads.folder())]  # some may vanish meanwhile

    before = stored()
    with connect(page) as connection:
        connection.sendall(
            b"POST /gradio_api/vit_demo/photo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"0" * 500
        )
        until(lambda: stored() != before)
    until(lambda: stored() == before)
    assert "Traceback" not in capfd.readouterr().err


def test_open_uploads_are_counted_by_address(page, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    monkeypatch.setattr(security, "MAX_UPLOADS_OF_ONE", 2)
    head = "POST /gradio_api/vit_demo/photo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nX-Forwarded-For: "
    with ExitStack() as opened:
        slow = [opened.enter_context(connect(page)) for _ in range(3)]
        for connection in slow:
            connection.sendall(f"{head}203.0.113.7\r\n\r\n0".encode())
        ready, _, _ = select.select(slow, [], [], 20)
        assert [connection.recv(12) for connection in ready] == [b"HTTP/1.1 429"]
        photo = "/gradio_api/vit_demo/photo"
        assert request(page, "POST", photo, png(), X_Forwarded_For="203.0.113.8")[0] == 200
    until(lambda: request(page, "POST", photo, png(), X_Forwarded_For="203.0.113.7")[0] == 200)


def test_uploads_are_bounded_by_file_and_by_address(page, monkeypatch):
    status, reply = upload(page, b"0" * (MAX_PICTURE_BYTES + security.FORM_BYTES))
    assert status == 413
    status, reply = upload(page, png())
    assert status == 200 and uploads.is_upload_path(json.loads(reply)[0])
    monkeypatch.setattr("vit_demo.web.guard.security.UPLOAD_FILE_BYTES", 400_000_000)
    status, reply = upload(page, png())
    assert status == 429 and b"try again later" in reply


def test_an_upload_in_chunks_is_refused_whatever_length_it_claims(page):
    """The chunks decide how long the body is, so the length that was claimed would bound nothing."""
    before = set(uploads.folder().rglob("*"))
    head = "POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n' + png() + b"\r\n"
    body = 40 * part + b"--b--\r\n"
    for length in ("", "Content-Length: 100\r\n"):
        with connect(page) as connection:
            connection.sendall(f"{head}{length}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode())
            connection.sendall(body + b"\r\n0\r\n\r\n")
            reply = connection.recv(1000)
        assert reply.split()[1] == b"411", reply
    assert set(uploads.folder().rglob("*")) == before


def test_an_upload_has_one_file_and_counts_more_than_its_size(page, monkeypatch):
    before = set(uploads.folder().rglob("*"))
    status, reply = upload(page, *(b"%d" % i for i in range(1000)))
    assert status == 400 and b"Too many files" in reply
    assert set(uploads.folder().rglob("*")) == before
    monkeypatch.setattr(security, "UPLOAD_QUOTA_BYTES", 10 * UPLOAD_FILE_BYTES + 1000)
    app = TestClient(asgi_app())
    sent = [app.post("/gradio_api/upload", files={"files": ("a.png", b"%d" % i)}).status_code for i in range(12)]
    assert sent == [200] * 9 + [429] * 3 or sent == [200] * 10 + [429] * 2


def test_a_quota_is_per_address_and_comes_back_within_an_hour():
    now = [1000.0]
    quota = Pace(100 / 3600, 100, 0.001, "wait", addresses=2, clock=lambda: now[0])
    assert quota.wait("a", 60) == quota.wait("b", 60) == 0
    with pytest.raises(RequestRefused, match="wait"):
        quota.wait("a", 60)
    now[0] += 3600 * 0.2
    assert quota.wait("a", 60) < 0.001
    now[0] += 3600
    assert quota.wait("a", 100) < 0.001
    quota.wait("c", 100)
    assert len(quota._used) == 2


def test_requests_of_an_address_are_spread_over_time_and_those_of_others_are_not():
    now = [1000.0]
    pace = Pace(per_second=10, burst=3, longest=0.25, addresses=2, clock=lambda: now[0])
    assert [round(pace.wait("a"), 3) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]
    with pytest.raises(RequestRefused, match="more slowly"):
        pace.wait("a")
    assert pace.wait("b") == 0
    now[0] += 0.2
    assert pace.wait("a") == pytest.approx(0.1), "one that was refused takes no turn"
    now[0] += 3600
    assert [round(pace.wait("a"), 3) for _ in range(4)] == [0, 0, 0, 0.1], "a long pause saves up no more than a burst"
    pace.wait("c")
    assert len(pace._used) == 2


def test_old_uploads_are_deleted_and_the_oldest_when_the_folder_is_full(tmp_path, monkeypatch):
    of_a_server = uploads.UploadCleaner()
    monkeypatch.setattr(uploads, "_folder", tmp_path)

    def put(age: float) -> Path:
        path = tmp_path / secrets.token_hex(32) / "photo.png"
        path.parent.mkdir()
        path.write_bytes(png())
        os.utime(path, (now - age, now - age))
        return path

    now = time.time()
    example = put(10_000)
    cleaner = uploads.UploadCleaner()
    files = [put(age) for age in (300, 200, 100)]
    cleaner.clean(now)
    assert all(file.exists() for file in files)
    cleaner.max_bytes = 2 * len(png())
    cleaner.clean(now)
    assert [file.exists() for file in files] == [False, True, True]
    cleaner.max_bytes = 1 << 30
    cleaner.max_files = 2
    files.append(put(60))
    cleaner.clean(now)
    assert [file.exists() for file in files] == [False, False, True, True]
    uploads.read(files[2])  # used again, so it counts as new
    cleaner.clean(now + 3550)
    assert [file.exists() for file in files] == [False, False, True, False]
    of_a_server.clean(now)  # which runs meanwhile, and has a folder of its own
    cleaner.clean(now + 2 * 3600)
    assert not files[2].exists() and example.exists(), "what was there at the start stays"


def test_uploads_take_half_of_a_small_disk_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "_folder", tmp_path)
    cleaner, now = uploads.UploadCleaner(), time.time()
    cleaner.free_bytes = lambda: 2 * len(png())
    files = [tmp_path / name for name in ("old.png", "new.png", "newer.png")]
    for age, file in zip((300, 200, 100), files, strict=True):
        file.write_bytes(png())
        os.utime(file, (now - age, now - age))
    cleaner.clean(now)
    assert [file.exists() for file in files] == [False, True, True]
    cleaner.free_bytes = lambda: 0
    cleaner.clean(now)
    assert [file.exists() for file in files] == [False, False, True], "something else fills it: half is given back"


def test_a_full_disk_frees_itself_while_the_server_runs(tmp_path, monkeypatch):
    class Full(uploads.UploadCleaner):
        def free_bytes(self) -> int:
            return 0

    monkeypatch.setattr(uploads, "_folder", tmp_path)  # without what other tests have left, which is kept
    monkeypatch.setattr(server, "UPLOADS_SECONDS", 0.05)
    monkeypatch.setattr(uploads, "UploadCleaner", Full)  # of the next server: those that run have theirs
    with TestClient(asgi_app()):
        old = uploads.folder() / ("0" * 64) / "photo"
        old.parent.mkdir()
        old.write_bytes(png())
        until(lambda: not old.exists())


def test_empty_folders_of_any_library_are_deleted_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "_folder", tmp_path)
    cleaner, now = uploads.UploadCleaner(), time.time()
    for name in ("0" * 40, "1" * 64, "tmpabc", "vibe_edit_history", "gradio"):
        (tmp_path / name).mkdir()
    (tmp_path / "gradio" / "file").touch()
    cleaner.clean(now + uploads.EMPTY_SECONDS - 5)
    assert len(list(tmp_path.iterdir())) == 5, "an upload may be about to move there"
    cleaner.clean(now + uploads.EMPTY_SECONDS + 5)
    assert [path.name for path in tmp_path.iterdir()] == ["gradio"]


def test_a_file_of_an_upload_that_broke_off_is_deleted_and_the_folder_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "_folder", tmp_path / "uploads")
    (tmp_path / "uploads" / "tmpabc").mkdir(parents=True)
    (lock := tmp_path / "uploads" / uploads.LOCK).touch()
    cleaner = uploads.UploadCleaner()
    (tmp_path / "uploads" / "tmpabc" / "photo").touch()
    cleaner.clean(time.time() + 2 * 3600)
    assert list((tmp_path / "uploads").iterdir()) == [lock]


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("HASH/photo", True), ("HASH", False), ("HASH/.photo", False), ("HASH/a/photo", False), ("photo", False),
     ("HASH0/photo", False), ("../HASH/photo", False), ("HASH/../photo", False), ("HASH/\0photo", False)],
)  # fmt: skip
def test_an_upload_is_a_file_in_a_folder_of_a_hash(path, is_one, tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "_folder", tmp_path)
    assert uploads.is_upload_path(f"{tmp_path}/{path.replace('HASH', 'a0' * 32)}") is is_one


def test_the_path_of_an_upload_is_known_to_who_has_the_file(page):
    path = send_photo(page, png())
    assert path == send_photo(page, png()) == json.loads(upload(page, png())[1])[0] != send_photo(page, png(41))
    guesses = [hashlib.sha256(key + png()).hexdigest() for key in (b"", png())]
    assert Path(path).is_relative_to(uploads.folder()) and Path(path).parent.name not in guesses


SERVERS = """
import os, pathlib, signal, sys
from vit_demo.web.guard import uploads
if not os.fork():
    (uploads.folder() / "photo.png").write_text("a face")
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
print(len(list(pathlib.Path(sys.argv[1]).rglob("photo.png"))), uploads._KEY.hex())
(uploads.folder() / "photo.png").write_text("another")
"""


def test_each_process_has_its_own_key_and_the_folders_of_killed_ones_are_deleted(tmp_path):
    (living := tmp_path / "vit_demo-living").mkdir()
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", SERVERS, str(tmp_path)]
    with (living / uploads.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = {**os.environ, "GRADIO_TEMP_DIR": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "ResourceWarning" not in done.stderr, "no file is left open"
    count, key = done.stdout.split()
    assert count == "1", "nothing deletes the folder of a server that is killed"
    assert len(bytes.fromhex(key)) == len(uploads._KEY) and key != uploads._KEY.hex()
    assert list(tmp_path.iterdir()) == [living], "that of a server which lives"


def test_uploads_are_deleted_with_the_lifespan_of_an_application():
    with TestClient(asgi_app()):  # which runs the lifespan, in a thread with a loop of its own
        (uploads.folder() / "photo.png").write_text("a face")
        (uploads.folder() / "a").mkdir(exist_ok=True)
    assert [path.name for path in uploads.folder().iterdir()] == [uploads.LOCK]


@pytest.mark.parametrize("end", [b"", b"\r\n--", b"\r\n--b"])
def test_an_upload_without_its_end_is_refused_and_leaves_nothing(page, end):
    def files() -> set[Path]:
        return {path for path in uploads.folder().rglob("*") if path.is_file()}

    before = files()
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
    kind = "multipart/form-data; boundary=b"
    status, _, reply = request(page, "POST", "/gradio_api/upload", part + png() + end, Content_Type=kind)
    assert status == 400 and b"is one file" in reply
    assert files() == before
