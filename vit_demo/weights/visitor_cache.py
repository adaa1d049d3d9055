"""Where repositories that visitors name are kept: apart from the operator's own cache, and bounded on disk.

Apart, so that nothing private that the operator ever fetched is served to a visitor who knows its name; bounded, so
that no visitor can fill the disk.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from huggingface_hub import constants, scan_cache_dir

from vit_demo.errors import CheckpointError
from vit_demo.weights import limits

_lock = threading.Lock()
_in_use: Counter[tuple[str, str]] = Counter()
"""How many threads read or fetch a (repository, commit)."""
_coming: dict[object, int] = {}
"""The size of each file that is being fetched."""


def folder() -> Path:
    """``VIT_DEMO_VISITOR_CACHE``, or ``vit_demo-visitors`` beside the Hub's own cache."""
    chosen = os.environ.get("VIT_DEMO_VISITOR_CACHE")
    return Path(chosen) if chosen else operators_folder().with_name("vit_demo-visitors")


def operators_folder() -> Path:
    """The Hub's own cache, which belongs to whoever runs this process."""
    return Path(os.environ.get("HF_HUB_CACHE") or constants.HF_HUB_CACHE)


@contextmanager
def in_use(repo: str, commit: str) -> Iterator[None]:
    """Keeps the files of a commit from being thrown away meanwhile."""
    key = (repo, commit)
    with _lock:
        _in_use[key] += 1
    try:
        yield
    finally:
        with _lock:
            _in_use[key] -= 1
            if not _in_use[key]:
                del _in_use[key]


@contextmanager
def room_for(repo: str, commit: str, size: int) -> Iterator[None]:
    """Throws away what was used least recently until a file fits, and holds its place while it is fetched.

    Raises:
        CheckpointError: If everything that could make room is in use.
    """
    ticket = object()
    with in_use(repo, commit):
        with _lock:
            _make_room(size + sum(_coming.values()))
            _coming[ticket] = size
        try:
            yield
        finally:
            with _lock:
                del _coming[ticket]


def touch(path: Path) -> None:
    """Marks a file as used just now; when it was read last is not recorded by every file system."""
    with suppress(OSError):
        os.utime(path)


def _make_room(size: int) -> None:
    busy = CheckpointError("Too many models are being fetched just now: try again in a few minutes.")
    if size > limits.VISITOR_CACHE_BYTES:
        raise busy
    while folder().is_dir():
        found = scan_cache_dir(folder())
        _remove_leftovers({repo.repo_path.name for repo in found.repos})
        revisions = [(revision.last_modified, repo, revision) for repo in found.repos for revision in repo.revisions]
        if found.size_on_disk + size <= limits.VISITOR_CACHE_BYTES and len(revisions) < limits.MAX_VISITOR_REVISIONS:
            return
        idle = [row for row in revisions if (row[1].repo_id, row[2].commit_hash) not in _in_use]
        if not idle:
            raise busy
        _, repo, revision = min(idle, key=lambda row: row[0])
        # Of this repository alone: a copy of it has commits of the same name.
        replace(found, repos=frozenset({repo})).delete_revisions(revision.commit_hash).execute()


def _remove_leftovers(known: set[str]) -> None:
    """Removes what interrupted downloads left: folders of repositories, and of their locks, that hold no files."""
    busy = {f"models--{repo.replace('/', '--')}" for repo, _ in _in_use}
    for parent in (folder(), folder() / ".locks"):
        for path in parent.glob("models--*"):
            if path.name not in known | busy:
                shutil.rmtree(path, ignore_errors=True)
