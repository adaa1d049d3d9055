"""What the descriptions of all commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

Commands = Any
"""What ``add_subparsers`` returns; argparse gives the type no public name."""


class Parser(argparse.ArgumentParser):
    """Prints errors on one line, without the usage, and keeps the line breaks of examples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit code 2."""
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], Any], description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Adds a command.

    ``run`` is called with the options, and returns something true if some of the input was invalid and reported. An
    example is its arguments, without the name of program and command.
    """
    lines = [f"  {program_name()} {name} {line}".rstrip() for line in examples]
    epilog = "\n".join(["examples:", *lines])
    command = commands.add_parser(name, help=description, description=f"{description[0].upper()}{description[1:]}.")
    command.epilog = epilog
    command.set_defaults(run=run)
    return command


def program_name() -> str:
    """How the program was started, for help and examples that can be copied."""
    started = Path(sys.argv[0]).name
    return "vit-demo" if started.startswith("vit-demo") else "python -m vit_demo"
