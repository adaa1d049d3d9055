"""The command line: ``python -m vit_demo``, or ``vit-demo`` once the package is installed.

Each command is a module with ``add(commands)``, which describes its arguments, and a function that runs it. The modules
import torch, numpy and Gradio only when a command runs that needs them, so that help is quick.
"""

import io
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

from vit_demo.checks import printable
from vit_demo.cli.parser import Parser, program_name
from vit_demo.errors import InputError
from vit_demo.version import __version__

__all__ = ["build_parser", "main"]

COMMANDS = ("presets", "explain", "compare", "heads", "gallery", "evaluate", "audit", "train", "teach", "serve")
"""The commands in the order of the help, each a module of this package."""

OK, BAD_INPUT, STOPPED = 0, 2, 130  # exit codes; the last is a shell's for a program that was stopped with Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0; 2 for invalid input, with a line on stderr; 130 after Ctrl-C."""
    return run_program(build_parser(), "vit_demo", arguments)


def run_program(parser: ArgumentParser, name: str, arguments: Sequence[str] | None) -> int:
    """Runs the function that a parser finds in the arguments; see ``main``. Errors begin with the program's name."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name may not be text in the encoding of a pipe
            stream.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    try:
        return BAD_INPUT if options.run(options) else OK
    except InputError as error:  # any other exception is a bug, and keeps its traceback
        print(printable(f"{name}: {error}"), file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"{name}: stopped.{getattr(options, 'when_stopped', '')}", file=sys.stderr)
        return STOPPED


def build_parser() -> ArgumentParser:
    """The parser; ``parse_args(...).run`` is the function of the chosen command."""
    parser = Parser(
        prog=program_name(),
        description="See how a Vision Transformer works.",
        epilog=f"Each command describes itself, with examples: {program_name()} explain --help",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name in COMMANDS:
        import_module(f"vit_demo.cli.{name}").add(commands)
    return parser
