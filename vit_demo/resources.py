"""What the process finds around it: files beside the package or inside it, and how much memory it may use."""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with a container's limit, in the second and in the first version of control groups."""

MAX_DESCRIPTORS = 8192  # connections and files that a server may hold open; a flood takes some thousands

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """The path of a folder of the repository, such as ``checkpoints`` or ``docs``.

    An installed package looks only inside itself, because a folder of that name beside it belongs to another package.
    """
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name


def memory_limit() -> int:
    """Bytes of memory that this process may use: the machine's, or less if its container has a limit."""
    with suppress(OSError, ValueError, AttributeError):  # not on Windows
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for path in CGROUP_LIMITS:
            with suppress(OSError, ValueError):  # there is no such file, or it says "max"
                most = min(most, int(Path(path).read_text()))
        return most
    return 8 << 30


def descriptor_limit() -> int:
    """Connections and files that this process may hold open."""
    with suppress(ImportError, OSError):  # not on Windows
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return MAX_DESCRIPTORS if soft < 0 else soft  # infinity is -1
    return MAX_DESCRIPTORS


def raise_descriptor_limit() -> None:
    """Lets this process open ``MAX_DESCRIPTORS``, or as many as the system allows."""
    with suppress(ImportError, OSError, ValueError):  # not on Windows; macOS may allow fewer than it says
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MAX_DESCRIPTORS if hard < 0 else min(MAX_DESCRIPTORS, hard)  # infinity is -1
        if 0 <= soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def release_memory() -> None:
    """Gives the memory of discarded networks back to the system."""
    gc.collect()
    trim_memory()


def trim_memory() -> None:
    """Gives freed memory back to the system, which glibc otherwise keeps in pieces between those in use."""
    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
