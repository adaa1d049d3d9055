"""Runs all tests as machines differ: ``python -m scripts.steady``, or some of the runs by their names.

Prints how long each run took and what failed, keeps the output of runs with failures, and ends with 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS: dict[str, tuple[list[str], dict[str, str]]] = {
    "quiet": ([], {}),
    "again": ([], {}),
    "busy": ([], {}),
    "four": (["-n", "4"], {}),
    "order": ([], {"VIT_DEMO_ORDER": str(time.time_ns())}),
    "late": ([], {"VIT_DEMO_DELAYS": "1"}),
    "one": (["-n", "1"], {}),
}
"""The options of pytest and the environment of each run; ``busy`` has four loops beside it, which never rest."""
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(10**6))"
"""A loop that ends with the process whose number it is given, however that ends."""


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keeps so many processes busy while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(name: str, tests: Sequence[str], folder: Path) -> bool:
    """Makes one run, and prints what came of it; whether nothing failed."""
    options, environment = RUNS[name]
    file, started = folder / f"{name}.txt", time.monotonic()
    command = [sys.executable, "-m", "pytest", *options, *tests]
    shown = " ".join([*(f"{key}={value}" for key, value in environment.items()), "python", *command[1:]])
    with file.open("w") as log, busy_loops(4 if name == "busy" else 0):
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT)  # once, so that the tests end what they have started
            process.wait()
            raise
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    text = file.read_text(errors="replace")
    failures = re.findall(r"^(?:FAILED|ERROR) .*", text, re.MULTILINE)
    last = (text.strip().splitlines() or [""])[-1] if code >= 0 else f"ended by signal {-code}"
    print(f"{name:6} {minutes:2}:{seconds:02}  {last}  {shown}", *failures, sep="\n    ")
    if code == 0:
        file.unlink()
    else:
        print(f"    see {file}")
    sys.stdout.flush()
    return code == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code."""
    parser = argparse.ArgumentParser(description="All tests, run as machines differ.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)} (all)")
    parser.add_argument("--tests", nargs="*", default=[], metavar="PATH", help="only these")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "steady", metavar="DIR", help="for failures (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.runs) - RUNS.keys():
        parser.error(f"no run {min(unknown)!r}: choose of {', '.join(RUNS)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    passed = [run(name, chosen.tests, chosen.out) for name in chosen.runs or RUNS]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
