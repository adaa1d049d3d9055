"""Memory of a server whose visitors bring one large repository after another, under a limit of memory.

    python -m benchmarks.memory --limit 2

Four ViT-B/16 with random weights are explained in turn, three times over, with one relevance map each.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import timm
from PIL import Image
from timm.models._hub import save_for_hf

from vit_demo import resources

PHOTO = Path(__file__).parents[1] / "vit_demo" / "web" / "examples" / "cat.jpg"


def megabytes(name: str) -> int:
    """A line of ``/proc/self/status``, such as ``VmHWM``: the largest resident memory so far."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 // 10**6


def main() -> None:
    """Prints the resident memory after each repository, and its peak."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--limit", type=float, default=4, help="GB of memory that the server may use")
    limit = int(arguments.parse_args().limit * 2**30)
    resources.memory_limit = lambda: limit  # before the modules that read it are imported

    import vit_demo
    from vit_demo.web import server  # noqa: F401  what a server has imported counts as well

    with tempfile.TemporaryDirectory() as folder:
        for number in range(4):
            save_for_hf(timm.create_model("vit_base_patch16_224"), f"{folder}/{number}", safe_serialization=True)
        resources.release_memory()
        for turn in range(3):
            for number in range(4):
                vit_demo.explore(Image.open(PHOTO), f"{folder}/{number}").relevance()
                print(f"turn {turn}, repository {number}: {megabytes('VmRSS')} MB, peak {megabytes('VmHWM')} MB")


if __name__ == "__main__":
    main()
