"""The folder of uploaded files: private to this process, bounded in size and age, deleted when the process ends.

Each file is in a folder named by a keyed hash of its content, so that only the sender knows the path of an upload, and
who sends it again gets the same path. Each process chooses a random key.
"""

import atexit
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.errors import ImageError, InputError

UPLOAD_FOLDER_BYTES = 2_000_000_000  # total size of the uploaded files; beyond that the oldest are deleted
UPLOAD_FOLDER_FILES = 20_000  # number of uploaded files; beyond that the oldest are deleted
UPLOAD_LIFETIME_SECONDS = 3600.0  # time after its last use when an uploaded file is deleted
EMPTY_SECONDS = 60.0  # time after which an empty folder is deleted

try:
    import fcntl
except ImportError:  # on Windows, where the folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

NOT_AN_UPLOAD = "This picture is not on the server: choose it again."
"""The message for any path that is not an upload, whether the file exists or not."""

PREFIX = "vit_demo-"
LOCK = ".lock"

_locks: list[IO[str]] = []
_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = secrets.token_bytes(32)
_lock = threading.Lock()
_folder: Path | None = None


def folder() -> Path:
    """The upload folder, which the first call creates; ``InputError`` if that fails."""
    global _folder
    with _lock:
        if _folder is None:
            base = os.environ.get("GRADIO_TEMP_DIR")
            try:
                if base:
                    Path(base).mkdir(parents=True, exist_ok=True)
                _folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX, dir=base)))
            except OSError as error:
                where = base or "the temporary folder of this machine"
                raise InputError(
                    "Uploads cannot be stored in {0} ({1}): set GRADIO_TEMP_DIR to a folder that can be written.",
                    where,
                    error.strerror,
                ) from error
            if fcntl is not None:  # the system releases the lock when this process ends in any way
                _locks.append((_folder / LOCK).open("w"))
                fcntl.flock(_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            _sweep(_folder.parent)
            os.environ["GRADIO_TEMP_DIR"] = str(_folder)
            atexit.register(remove)
    return _folder


def _sweep(base: Path) -> None:
    """Deletes the folders of killed processes, whose locks are free."""
    if fcntl is None:
        return
    for lock in base.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("w") as file:  # fails for another user's folder and for a live process
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def clear() -> None:
    """Deletes the content of the folder when a server stops."""
    if _folder is not None:
        for path in _folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink(missing_ok=True)


def remove() -> None:
    """Deletes the folder, and gives up its lock."""
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
    while _locks:
        _locks.pop().close()


async def store(pieces: AsyncIterator[bytes]) -> Path:
    """Stores an upload as it arrives; ``OSError`` if the disk is full or cannot be written."""
    digest = hashlib.sha256(_KEY)
    with tempfile.TemporaryDirectory(dir=folder()) as arriving:
        with Path(arriving, "photo").open("wb") as file:
            async for piece in pieces:
                digest.update(piece)
                file.write(piece)
        path = folder() / digest.hexdigest() / "photo"
        path.parent.mkdir(exist_ok=True)
        return Path(file.name).replace(path)


def is_upload_path(path: Any) -> bool:
    """Whether a path has the form of an upload's path; the file system is not accessed."""
    if not isinstance(path, str) or "\0" in path or len(path) > 1000:
        return False
    try:
        parts = Path(os.path.normpath(path)).relative_to(folder()).parts
    except ValueError:
        return False
    return len(parts) == 2 and _HASH.fullmatch(parts[0]) is not None and not parts[1].startswith(".")


def find(payload: Any) -> Path:
    """The path of an upload, from a string or Gradio's file data ``{"path": ...}``.

    ``ImageError`` if it is not an upload, always with the same message.
    """
    path = payload.get("path") if isinstance(payload, dict) else payload
    if not isinstance(path, str) or not is_upload_path(path):
        raise ImageError(NOT_AN_UPLOAD)
    upload = Path(os.path.normpath(path))
    if upload.is_symlink() or not upload.is_file():
        raise ImageError(NOT_AN_UPLOAD)
    return upload


def read(path: Path) -> bytes:
    """Reads an upload and restarts its lifetime; ``ImageError`` if it was deleted in the meantime."""
    try:
        os.utime(path)
        with path.open("rb") as file:
            return file.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        raise ImageError(NOT_AN_UPLOAD) from error


class UploadCleaner:
    """Deletes old uploads, and the oldest ones if the folder is too large, but no file older than the cleaner."""

    def __init__(self) -> None:
        self.max_bytes, self.max_files = UPLOAD_FOLDER_BYTES, UPLOAD_FOLDER_FILES
        self._folder = folder()
        self._kept = set(self._files())

    def clean(self, now: float) -> None:
        """Cleans once; ``now`` is the time in seconds since the epoch."""
        files = []
        for path in self._files():
            with suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        files.sort(reverse=True, key=lambda entry: entry[0])
        # Half of what the disk has for uploads, since it may be memory, and others may fill it.
        most = min(self.max_bytes, (self.free_bytes() + sum(size for _, size, _ in files)) // 2)
        total = 0
        for count, (changed, size, path) in enumerate(files, start=1):
            total += size
            is_old = now - changed > UPLOAD_LIFETIME_SECONDS
            if path in self._kept or not (is_old or total > most or count > self.max_files):
                continue
            path.unlink(missing_ok=True)
        for path in self._folder.iterdir():
            with suppress(OSError):  # it holds files, or is one
                if now - path.stat().st_mtime > EMPTY_SECONDS:
                    path.rmdir()

    def free_bytes(self) -> int:
        """What is left of the disk."""
        return shutil.disk_usage(self._folder).free

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if path.is_file()]
