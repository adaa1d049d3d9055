"""Decodes untrusted files in separate processes, two at a time."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images.decoder import OK, REFUSED, TOO_COMPLEX
from vit_demo.images.limits import MAX_DECODE_SECONDS, MAX_SIDE, MAX_WAIT_SECONDS
from vit_demo.images.rgb import DAMAGED

_HERE = Path(__file__).parent

# Empty packages replace vit_demo and vit_demo.images, whose own __init__ would import torch, which takes seconds.
_START = """
import sys, types
for name, folder in zip(("vit_demo", "vit_demo.images"), sys.argv[1:]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from vit_demo.images.decoder import main
main()
"""

_pictures = threading.BoundedSemaphore(2)  # so that one that takes long does not stop all others
_drawings = threading.BoundedSemaphore(2)


@contextmanager
def decoding_slot(*, drawing: bool = False) -> Iterator[None]:
    """Waits until nothing else is being decoded; drawings, which are small and quick, do not wait for photos.

    After `MAX_WAIT_SECONDS` it raises `ImageError`.
    """
    slot = _drawings if drawing else _pictures
    if not slot.acquire(timeout=MAX_WAIT_SECONDS):
        raise ImageError("Too many pictures are being decoded right now: try again in a few seconds.")
    try:
        yield
    finally:
        slot.release()


def decode_in_process(data: bytes) -> Image.Image:
    """Decodes a picture file, or raises `ImageError`, in a process that the kernel ends when it exceeds its limits."""
    command = [sys.executable, "-P", "-c", _START, str(_HERE.parent), str(_HERE)]
    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MAX_DECODE_SECONDS,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ImageError(TOO_COMPLEX) from error
    head, _, pixels = done.stdout.partition(b"\n")
    if done.returncode == 0 and head.startswith(REFUSED):
        raise ImageError(done.stdout[len(REFUSED) + 1 :].decode())
    if done.returncode == 0 and head.startswith(OK):
        width, height = (int(word) for word in head.split()[1:])
        if 1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE and len(pixels) == width * height * 3:
            return Image.frombytes("RGB", (width, height), pixels)
    out_of_time = sys.platform != "win32" and done.returncode == -signal.SIGPROF
    raise ImageError(TOO_COMPLEX if out_of_time else DAMAGED)


def _environment() -> dict[str, str]:
    """The variables that Python needs to start, and none of the server's secrets."""
    names = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    # numpy would reserve memory for one thread per core.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return kept | threads | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
