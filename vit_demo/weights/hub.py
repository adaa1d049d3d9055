"""Files from the Hugging Face Hub: fetched once, kept in a cache, hashes checked, every failure one sentence."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm import tqdm

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import limits, visitor_cache
from vit_demo.weights.text import quoted

Progress = Callable[[str, int, int], None]
"""Told a file's name, the bytes that are there, and the bytes in all, now and then while it is fetched."""

INSTEAD = "choose the bundled photos-tiny (Photos, 50 everyday things)"
TIMEOUT = 10
"""Seconds to wait for the Hub's first answer."""
REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
REVISION = re.compile(r"(?=.{1,100}$)\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
"""A commit, tag or branch; it becomes part of a path, so none of its parts begins with a dot."""


class MissingFileError(CheckpointError):
    """The repository is there, the file is not."""


def fetch(
    repo: str,
    filename: str,
    revision: str,
    progress: Progress | None = None,
    *,
    trusted: bool = True,
    max_bytes: int | None = None,
) -> Path:
    """A file of a repository, from the cache where it is there; only otherwise is the network asked.

    Where they are is decided when this is called, by the Hub's own variables ``HF_ENDPOINT`` and ``HF_HUB_CACHE``.

    Args:
        repo: As in ``org/name``.
        filename: Within the repository.
        revision: A commit, a tag or a branch.
        progress: Told how far it is; a bar on stderr for None.
        trusted: Whether the repository was named by whoever runs this process. Otherwise it was named by a visitor:
            their token is not sent, and their cache is neither read nor written; see ``visitor_cache``.
        max_bytes: Larger files are not fetched; ``limits.MAX_WEIGHTS_BYTES`` for None.

    Returns:
        Where it is. Its SHA-256, or its git hash where it is a small file, is the one that the Hub names; only a file
        system without links hides that name once the file is in the cache.

    Raises:
        PresetError: If ``repo`` or ``revision`` cannot be one.
        MissingFileError: If the repository has no such file.
        CheckpointError: If there is no network, no such repository, no room, or what came is not what was announced.
    """
    max_bytes = limits.MAX_WEIGHTS_BYTES if max_bytes is None else max_bytes
    cache = visitor_cache.operators_folder() if trusted else visitor_cache.folder()
    if not REPOSITORY.fullmatch(repo):
        raise _no_repository(repo)
    if not REVISION.fullmatch(revision):
        raise PresetError(f"{quoted(revision)} cannot be a revision: name a commit, a tag or a branch.")
    try:
        kept = try_to_load_from_cache(repo, filename, cache_dir=cache, revision=revision)
    except HFValidationError as error:
        raise _no_repository(repo) from error
    if isinstance(kept, str):
        path = Path(kept)
        blob = path.parent / path.readlink() if path.is_symlink() else path
        etag = blob.name if blob.parent.name == "blobs" else ""
    else:
        path, etag = _download(repo, filename, revision, cache, progress, trusted, max_bytes)
    if path.stat().st_size > max_bytes:
        raise _too_large(repo, filename, path.stat().st_size, max_bytes)
    if not _is(path, etag):
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise CheckpointError(
            f"{filename} of {repo} is damaged: its hash is not the one that the Hub names, so it was thrown away; "
            f"try again, or {INSTEAD}."
        )
    if not trusted:
        visitor_cache.touch(path)
    return path


def commit_of(path: Path) -> str:
    """The commit that a fetched file belongs to."""
    return path.parent.name


def _download(
    repo: str,
    filename: str,
    revision: str,
    cache: Path,
    progress: Progress | None,
    trusted: bool,
    max_bytes: int,
) -> tuple[Path, str]:
    """Where a file was put, and the hash that the Hub announced for it."""
    endpoint = os.environ.get("HF_ENDPOINT")
    token = None if trusted else False  # None: whatever the user has logged in with
    try:
        # Asked first on its own, because the download below tries a silent network again for half a minute.
        url = hf_hub_url(repo, filename, revision=revision, endpoint=endpoint)
        about = get_hf_file_metadata(url, token=token, timeout=TIMEOUT, endpoint=endpoint)
    except RepositoryNotFoundError as error:
        remedy = "check its name, or log in with `hf auth login`" if trusted else "check its name"
        raise CheckpointError(
            f"{repo} is not on the Hub, or not open to {'you' if trusted else 'everyone'}: {remedy}."
        ) from error
    except RevisionNotFoundError as error:
        raise CheckpointError(f"{repo} has no revision {revision!r}: name another one, or just {repo}.") from error
    except EntryNotFoundError as error:
        raise MissingFileError(f"{repo} has no {filename}, so it cannot be used here.") from error
    except Exception as error:  # its HTTP library changes between versions, so the errors of that have no name here
        raise _unreachable(repo, error) from error
    # The Hub always announces a size; max_bytes stands in for one that it left out.
    size = max_bytes if about.size is None else about.size
    if size > max_bytes:
        raise _too_large(repo, filename, size, max_bytes)
    room = nullcontext() if trusted else visitor_cache.room_for(repo, about.commit_hash or revision, size)
    try:
        # It goes on by itself where a connection breaks, and leaves nothing behind where it gives up.
        with room:
            path = hf_hub_download(
                repo, filename, revision=revision, cache_dir=cache, endpoint=endpoint, token=token,
                tqdm_class=_bar(progress, repo, filename, max_bytes), etag_timeout=TIMEOUT,
            )  # fmt: skip
    except CheckpointError:
        raise
    except Exception as error:
        reason = (isinstance(error, OSError) and error.strerror) or "the connection broke"
        raise CheckpointError(
            f"{filename} of {repo} could not be fetched ({reason}): try again, or {INSTEAD}."
        ) from error
    return Path(path), about.etag or ""


def _no_repository(name: str) -> PresetError:
    return PresetError(f"{quoted(name)} is neither a folder nor a repository of the Hub: write it as org/name.")


def _too_large(repo: str, filename: str, size: int, max_bytes: int) -> CheckpointError:
    return CheckpointError(
        f"{filename} of {repo} has {_megabytes(size)}: choose a model with at most {_megabytes(max_bytes)}."
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _unreachable(repo: str, error: Exception) -> CheckpointError:
    kept_offline = isinstance(error, OfflineModeIsEnabled)
    why = "this computer is set to stay offline (HF_HUB_OFFLINE)" if kept_offline else "the Hub does not answer"
    return CheckpointError(f"{repo} cannot be fetched, because {why}: go online, or {INSTEAD}.")


def _is(path: Path, etag: str) -> bool:
    """Whether a file's content has the hash that the Hub names: SHA-256 of a large file, git's own of a small one.

    ``huggingface_hub`` compares the length alone. An etag of another form says nothing about the content.
    """
    with path.open("rb") as file:
        if re.fullmatch("[0-9a-f]{64}", etag):
            return hashlib.file_digest(file, "sha256").hexdigest() == etag
        if re.fullmatch("[0-9a-f]{40}", etag):
            git = hashlib.sha1(b"blob %d\0" % path.stat().st_size)
            return hashlib.file_digest(file, lambda: git).hexdigest() == etag
    return True


def _bar(progress: Progress | None, repo: str, filename: str, max_bytes: int) -> type[tqdm]:
    """A bar, of the class that ``huggingface_hub`` wants, that stops a file from growing beyond ``max_bytes``.

    It tells ``progress`` how far it is, or draws itself where there is none.
    """

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            quiet = {} if progress is None else {"file": io.StringIO(), "disable": False}
            super().__init__(*args, **{**kwargs, **quiet})

        def update(self, n: float | None = 1) -> bool | None:
            if self.n + (n or 0) > max_bytes:
                raise _too_large(repo, filename, int(self.n + (n or 0)), max_bytes)
            return super().update(n)

        def display(self, *args: Any, **kwargs: Any) -> None:
            if progress is None:
                super().display(*args, **kwargs)
            else:
                progress(filename, int(self.n), int(self.total or 0))

    return Bar
