"""Files from the Hugging Face Hub: fetched once, kept in its cache, hashes checked, every failure one sentence."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable
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

Progress = Callable[[str, int, int], None]
"""Told a file's name, the bytes that are there, and the bytes in all, now and then while it is fetched."""

INSTEAD = "choose the bundled photos-tiny (Photos, 50 everyday things)"
TIMEOUT = 10
"""Seconds to wait for the Hub's first answer."""
MAX_BYTES = 2 << 30
"""Larger files are not fetched: a stranger may name any repository on a public page."""


class MissingFileError(CheckpointError):
    """The repository is there, the file is not."""


def fetch(repo: str, filename: str, revision: str, progress: Progress | None = None) -> Path:
    """A file of a repository, from the cache where it is there; only otherwise is the network asked.

    Where they are is decided when this is called, by the Hub's own variables ``HF_ENDPOINT`` and ``HF_HUB_CACHE``.

    Args:
        repo: As in ``org/name``.
        filename: Within the repository.
        revision: A commit, a tag or a branch.
        progress: Told how far it is; a bar on stderr for None.

    Returns:
        Where it is. Its SHA-256, or its git hash where it is a small file, is the one that the Hub names; only a file
        system without links hides that name once the file is in the cache.

    Raises:
        PresetError: If ``repo`` cannot be a repository's name.
        MissingFileError: If the repository has no such file.
        CheckpointError: If there is no network, no such repository, or what came is not what was announced.
    """
    cache = os.environ.get("HF_HUB_CACHE")
    try:
        kept = try_to_load_from_cache(repo, filename, cache_dir=cache, revision=revision)
    except HFValidationError as error:
        raise PresetError(f"{repo!r} is neither a folder nor a repository of the Hub: write it as org/name.") from error
    if isinstance(kept, str):
        path = Path(kept)
        blob = path.resolve()
        etag = blob.name if blob.parent.name == "blobs" else ""
    else:
        path, etag = _download(repo, filename, revision, cache, progress)
    if not _is(path, etag):
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise CheckpointError(
            f"{filename} of {repo} is damaged: its hash is not the one that the Hub names, so it was thrown away; "
            f"try again, or {INSTEAD}."
        )
    return path


def commit_of(path: Path) -> str:
    """The commit that a fetched file belongs to."""
    return path.parent.name


def _download(
    repo: str, filename: str, revision: str, cache: str | None, progress: Progress | None
) -> tuple[Path, str]:
    """Where a file was put, and the hash that the Hub announced for it."""
    endpoint = os.environ.get("HF_ENDPOINT")
    try:
        # Asked first on its own, because the download below tries a silent network again for half a minute.
        about = get_hf_file_metadata(
            hf_hub_url(repo, filename, revision=revision, endpoint=endpoint), timeout=TIMEOUT, endpoint=endpoint
        )
    except RepositoryNotFoundError as error:
        raise CheckpointError(
            f"{repo} is not on the Hub, or not open to you: check its name, or log in with `hf auth login`."
        ) from error
    except RevisionNotFoundError as error:
        raise CheckpointError(f"{repo} has no revision {revision!r}: name another one, or just {repo}.") from error
    except EntryNotFoundError as error:
        raise MissingFileError(f"{repo} has no {filename}, so it cannot be used here.") from error
    except Exception as error:  # its HTTP library changes between versions, so the errors of that have no name here
        raise _unreachable(repo, error) from error
    if (about.size or 0) > MAX_BYTES:
        size = (about.size or 0) / 1e9
        raise CheckpointError(f"{filename} of {repo} has {size:.1f} GB: choose a model of at most 2 GB.")
    try:
        # It goes on by itself where a connection breaks, and leaves nothing behind where it gives up.
        bar = tqdm if progress is None else _reporting(progress, filename)
        path = hf_hub_download(
            repo, filename, revision=revision, cache_dir=cache, endpoint=endpoint, tqdm_class=bar, etag_timeout=TIMEOUT
        )
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise CheckpointError(
            f"{filename} of {repo} could not be fetched ({reason}): try again, or {INSTEAD}."
        ) from error
    return Path(path), about.etag or ""


def _unreachable(repo: str, error: Exception) -> CheckpointError:
    kept_offline = isinstance(error, OfflineModeIsEnabled)
    why = "this computer is set to stay offline (HF_HUB_OFFLINE)" if kept_offline else "the Hub does not answer"
    return CheckpointError(f"{repo} cannot be fetched, because {why}: go online, or {INSTEAD}.")


def _is(path: Path, etag: str) -> bool:
    """Whether a file's content has the hash that the Hub names: SHA-256 of a large file, git's own of a small one.

    ``huggingface_hub`` compares the length alone. An etag of another form says nothing about the content.
    """
    if re.fullmatch("[0-9a-f]{64}", etag):
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == etag
    if re.fullmatch("[0-9a-f]{40}", etag):
        content = path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == etag
    return True


def _reporting(progress: Progress, filename: str) -> type[tqdm]:
    """A bar, of the class that ``huggingface_hub`` wants, that tells a function instead of drawing itself."""

    class Reporting(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "file": io.StringIO(), "disable": False})

        def display(self, *_: Any, **__: Any) -> None:
            progress(filename, int(self.n), int(self.total or 0))

    return Reporting
