"""The command line: ``python -m vit_demo``, or ``vit-demo`` once the package is installed.

Each command is a module with ``add(commands)``, which describes its arguments, and a function that runs it. The modules
import torch, numpy and Gradio only when a command runs that needs them, so that help and completion are quick.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from vit_demo.cli.output import printable
from vit_demo.cli.parser import build_parser
from vit_demo.errors import InputError

__all__ = ["build_parser", "main"]

OK, BAD_INPUT, STOPPED = 0, 2, 130
"""Exit codes; the last is a shell's for a program that was stopped with Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Command-line arguments; None for those of the process.

    Returns:
        The exit code: 0; 2 for invalid input, with one line on stderr; or 130 after Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name may not be text in the encoding of a pipe
            stream.reconfigure(errors="backslashreplace")
    options = build_parser().parse_args(arguments)
    try:
        return BAD_INPUT if options.run(options) else OK
    except InputError as error:  # any other exception is a bug, and keeps its traceback
        print(printable(f"vit_demo: {error}"), file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"vit_demo: stopped.{getattr(options, 'when_stopped', '')}", file=sys.stderr)
        return STOPPED
