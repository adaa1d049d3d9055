"""Files from the Hugging Face Hub: downloaded once, cached, checked by hash, with one-sentence errors."""

import hashlib
import io
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import (
    HfFileMetadata,
    errors,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from tqdm import tqdm

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import limits
from vit_demo.weights.hub import visitor_cache
from vit_demo.weights.hub.connection import FALLBACK, PORTAL, Call, check_token, endpoint, prepare, refusal, response_of
from vit_demo.weights.untrusted_text import quote

DownloadProgress = Callable[[str, int, int], None]  # called with (filename, bytes_done, bytes_total)
TIMEOUT = 10  # seconds to wait for the Hub's next byte
REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
REVISION = re.compile(r"(?=.{1,100}$)\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
"""A commit, tag or branch. It becomes part of a path, so none of its parts may begin with a dot."""
HASH = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")  # the SHA-1 that git gives a small file, or the SHA-256 of a large one
SLACK = 4096  # bytes by which a file may exceed the size that the Hub says


class MissingFileError(CheckpointError):
    """The repository exists, but has no such file."""


def fetch(
    repo: str,
    filename: str,
    revision: str,
    progress: DownloadProgress | None = None,
    *,
    trusted: bool = True,
    max_bytes: int | None = None,
) -> Path:
    """Returns a file of a repository, from the cache if possible; only otherwise is there a request to the network.

    Endpoint and cache are those of the Hub's variables ``HF_ENDPOINT`` and ``HF_HUB_CACHE`` at the time of the call. If
    a visitor chose the repository, it is not ``trusted``: the operator's token is not sent, and the operator's cache is
    neither read nor written; see ``visitor_cache``. A ``progress`` of None draws a progress bar on stderr.

    Returns:
        The path of the file, in a folder named by its commit, after its SHA-256 (its git hash if it is small) was
        compared with the Hub's. On a file system without symbolic links the hash of a cached file is not known, and is
        not compared.

    Raises:
        PresetError: If ``repo`` or ``revision`` is not valid.
        MissingFileError: If the repository has no such file.
        CheckpointError: If the Hub cannot be reached, there is no such repository, the disk or the cache is full, the
            file is too large, or its hash is wrong.
    """
    max_bytes = limits.MAX_WEIGHTS_BYTES if max_bytes is None else max_bytes
    cache = visitor_cache.folder(trusted)
    if not REPOSITORY.fullmatch(repo):
        raise _no_repository(repo)
    if not REVISION.fullmatch(revision):
        raise PresetError(f"{quote(revision)} is not a valid revision: use a commit, a tag or a branch.")
    try:
        cached = try_to_load_from_cache(repo, filename, cache_dir=cache, revision=revision)
    except errors.HFValidationError as error:
        raise _no_repository(repo) from error
    if isinstance(cached, str):
        path = Path(cached)
        blob = path.parent / path.readlink() if path.is_symlink() else path
        etag = blob.name if blob.parent.name == "blobs" else ""
    else:
        path, etag = _download(repo, filename, revision, cache, progress, trusted, max_bytes)
    where = path if trusted else "the cache"
    try:
        if (size := path.stat().st_size) > max_bytes:
            raise _too_large(repo, filename, size, max_bytes)
        is_whole = _has_hash(path, etag)
    except OSError as error:
        raise CheckpointError(f"{filename} of {repo} cannot be read ({error.strerror}): check {where}.") from error
    if not is_whole:
        done = "so it was deleted; try again"
        try:
            path.resolve().unlink()
            path.unlink(missing_ok=True)
        except OSError:  # the cache may be for reading alone
            done = f"and it cannot be deleted; replace {where}"
        raise CheckpointError(
            f"{filename} of {repo} is damaged: its hash differs from the Hub's, {done}, or {FALLBACK}."
        )
    if not trusted:
        with suppress(OSError):  # the cache goes by times of modification: not every file system records reads
            os.utime(path)
    return path


def is_cached(repo: str, filename: str, revision: str, *, trusted: bool = True) -> bool:
    """Whether ``fetch`` with the same arguments would find the file in the cache."""
    with suppress(errors.HFValidationError):
        return isinstance(try_to_load_from_cache(repo, filename, visitor_cache.folder(trusted), revision), str)
    return False


def _ask(repo: str, filename: str, revision: str, *, trusted: bool) -> HfFileMetadata:
    """What the Hub says of a file: its size, its hash, and the commit of a revision.

    A request of its own, because a download retries for half a minute if the network does not respond.
    """
    try:
        prepare()
        if trusted:
            check_token()
        url, token = hf_hub_url(repo, filename, revision=revision, endpoint=endpoint()), None if trusted else False
        about = Call().run(partial(get_hf_file_metadata, url, token=token, timeout=TIMEOUT, endpoint=endpoint()))
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(f"{repo} has no revision {revision!r}: use another one, or {repo} alone.") from error
    except errors.EntryNotFoundError as error:
        raise MissingFileError("{0} has no {1}, so it cannot be used here.", repo, filename) from error
    except CheckpointError:
        raise
    except Exception as error:  # the Hub client's HTTP library, and so its exceptions, changes between versions
        raise refusal(repo, error, trusted=trusted) from error
    if about.commit_hash is None:
        raise refusal(repo, PresetError(PORTAL), trusted=trusted)
    return about


def _download(
    repo: str,
    filename: str,
    revision: str,
    cache: Path,
    progress: DownloadProgress | None,
    trusted: bool,
    max_bytes: int,
) -> tuple[Path, str]:
    """Downloads a file; returns its path and the Hub's hash of it."""
    about = _ask(repo, filename, revision, trusted=trusted)
    # The Hub sends a size with every file; without one, max_bytes is reserved.
    size = max_bytes if about.size is None else about.size
    if size > max_bytes:
        raise _too_large(repo, filename, size, max_bytes)
    room = nullcontext() if trusted else visitor_cache.reserve_space(repo, about.commit_hash or revision, size)
    call, cancelled = Call(bool(HASH.fullmatch(about.etag or "")), about.size), threading.Event()
    token = None if trusted else False  # None: the token of `hf auth login`, if any
    try:
        # It resumes by itself after a broken connection, and leaves nothing behind if it gives up.
        with room:
            path = call.run(partial(
                hf_hub_download,
                repo, filename, revision=revision, cache_dir=cache, endpoint=endpoint(), token=token,
                tqdm_class=_progress_bar(progress, repo, filename, max_bytes, call, cancelled), etag_timeout=TIMEOUT,
            ))  # fmt: skip
    except CheckpointError:
        raise
    except Exception as error:
        if cancelled.is_set():
            raise
        if response_of(error) is not None:
            raise refusal(repo, error, trusted=trusted) from error
        reason = (isinstance(error, OSError) and error.strerror) or "the connection broke"
        raise CheckpointError(
            f"{filename} of {repo} could not be downloaded ({reason}): try again, or {FALLBACK}."
        ) from error
    return Path(path), about.etag or ""


def _no_repository(name: str) -> PresetError:
    what = "neither a folder nor a repository of the Hub"
    return PresetError(f"{quote(name)} is {what}: name a folder with a config.json, or write org/name.")


def _too_large(repo: str, filename: str, size: int, max_bytes: int) -> CheckpointError:
    return CheckpointError(
        "{0} of {1} has {2}: choose a model with at most {3}.",
        filename,
        repo,
        _megabytes(size),
        _megabytes(max_bytes),
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _has_hash(path: Path, etag: str) -> bool:
    """Whether a file has the Hub's hash: SHA-256 of a large file, git's SHA-1 of a small one.

    ``huggingface_hub`` compares only the length. An etag of another form is no hash, and is accepted.
    """
    with path.open("rb") as file:
        if re.fullmatch("[0-9a-f]{64}", etag):
            return hashlib.file_digest(file, "sha256").hexdigest() == etag
        if re.fullmatch("[0-9a-f]{40}", etag):
            git = hashlib.sha1(b"blob %d\0" % path.stat().st_size)
            return hashlib.file_digest(file, lambda: git).hexdigest() == etag
    return True


def _progress_bar(
    progress: DownloadProgress | None,
    repo: str,
    filename: str,
    max_bytes: int,
    call: Call,
    cancelled: threading.Event,
) -> type[tqdm]:
    """A tqdm class for ``huggingface_hub`` that aborts a download beyond ``max_bytes``, or what the Hub said.

    It calls ``progress``, or draws a bar on stderr if that is None; tells the ``call`` when bytes arrived; and sets
    ``cancelled`` if ``progress`` raises.
    """

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            quiet = {} if progress is None else {"file": io.StringIO(), "disable": False}
            super().__init__(*args, **{**kwargs, **quiet})

        def update(self, n: float | None = 1) -> bool | None:
            call.heard = time.monotonic()
            done = int(self.n + (n or 0))
            if done > max_bytes:
                raise _too_large(repo, filename, done, max_bytes)
            if call.size is not None and done > call.size + SLACK:
                raise CheckpointError("{0} of {1} is larger than the Hub said: use another mirror.", filename, repo)
            displayed = super().update(n)
            if progress is not None:  # here, because tqdm holds a lock of the whole process while it displays
                try:
                    progress(filename, int(self.n), int(self.total or 0))
                except BaseException:
                    cancelled.set()
                    raise
            return displayed

        def display(self, *args: Any, **kwargs: Any) -> None:
            if progress is None:
                super().display(*args, **kwargs)

    return Bar
