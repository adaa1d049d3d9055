"""The cache of repositories that visitors chose: separate from the operator's cache, and bounded.

Separate, so that private repositories that the operator downloaded are not served to visitors; bounded, so that no
visitor can fill the disk.
"""

import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from huggingface_hub import constants, scan_cache_dir

from vit_demo.errors import CheckpointError
from vit_demo.weights import limits

_lock = threading.Lock()
_in_use: Counter[tuple[str, str]] = Counter()  # number of threads that read or download a (repository, commit)
_reserved: dict[object, int] = {}  # size of each file that is being downloaded


def folder(trusted: bool = False) -> Path:
    """``VIT_DEMO_VISITOR_CACHE``, or ``vit_demo-visitors`` beside the Hub's cache; that of the operator if trusted."""
    chosen = os.environ.get("VIT_DEMO_VISITOR_CACHE")
    cache = Path(os.environ.get("HF_HUB_CACHE") or constants.HF_HUB_CACHE)
    if cache.parts[:1] == ("~",):
        raise CheckpointError("There is no home folder for what is downloaded: set HF_HOME to a folder.")
    return cache if trusted else Path(chosen) if chosen else cache.with_name("vit_demo-visitors")


@contextmanager
def in_use(repo: str, commit: str) -> Iterator[None]:
    """Protects the files of a commit from eviction."""
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
def reserve_space(repo: str, commit: str, size: int) -> Iterator[None]:
    """Evicts the least recently used commits until a file fits, and reserves its size while the block runs.

    ``CheckpointError`` if everything that could be evicted is in use.
    """
    ticket = object()
    with in_use(repo, commit):
        with _lock:
            _evict_until_fits(size + sum(_reserved.values()))
            _reserved[ticket] = size
        try:
            yield
        finally:
            with _lock:
                del _reserved[ticket]


def _evict_until_fits(size: int) -> None:
    busy = CheckpointError("Too many models are being downloaded right now: try again in a few minutes.")
    if size > limits.VISITOR_CACHE_BYTES:
        raise busy
    tried: set[tuple[str, str]] = set()  # what cannot be deleted is not chosen again
    while folder().is_dir():
        found = scan_cache_dir(folder())
        _remove_leftovers({repo.repo_path.name for repo in found.repos})
        revisions = [(revision.last_modified, repo, revision) for repo in found.repos for revision in repo.revisions]
        if found.size_on_disk + size <= limits.VISITOR_CACHE_BYTES and len(revisions) < limits.MAX_VISITOR_REVISIONS:
            return
        idle = [row for row in revisions if (row[1].repo_id, row[2].commit_hash) not in _in_use.keys() | tried]
        if not idle:
            raise busy
        _, repo, revision = min(idle, key=lambda row: row[0])
        tried.add((repo.repo_id, revision.commit_hash))
        # Only in this repository: a fork may have the same commit.
        replace(found, repos=frozenset({repo})).delete_revisions(revision.commit_hash).execute()


def _remove_leftovers(known: set[str]) -> None:
    """Removes what interrupted downloads left: folders of repositories, and of their locks, without a revision."""
    busy = {f"models--{repo.replace('/', '--')}" for repo, _ in _in_use}
    for parent in (folder(), folder() / ".locks"):
        for path in parent.glob("models--*"):
            if path.name not in known | busy:
                shutil.rmtree(path, ignore_errors=True)
