"""``completion``: a script with which the shell completes commands, options, presets and methods."""

import argparse

from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Commands, add_command
from vit_demo.defaults import METHOD_NAMES

SHELLS = ("bash", "zsh", "fish")

_FOLDERS, _FILES = ("DIR", "PATH"), ("FILE", "IMAGE")
"""Names of arguments in the help that stand for folders and for files."""


def add(commands: Commands) -> None:
    """Adds the command."""
    examples = [
        "bash >> ~/.bash_completion",
        "zsh > ~/.zfunc/_vit-demo",
        "fish > ~/.config/fish/completions/vit-demo.fish",
    ]
    description = "print the shell's completion script for vit-demo"
    command = add_command(commands, "completion", run, description, examples)
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> None:
    """Prints the script."""
    import shtab

    from vit_demo.weights import PRESETS

    parser = options.parser
    parser.prog = "vit-demo"
    values = {"preset": list(PRESETS), "method": list(METHOD_NAMES), "shell": list(SHELLS)}
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for command in commands.choices.values():
        for action in command._actions:
            if action.choices is None:
                action.choices = values.get(action.dest)
            if action.metavar in _FOLDERS + _FILES:
                kind = shtab.DIRECTORY if action.metavar in _FOLDERS else shtab.FILE
                action.complete = kind
    print_lines(*shtab.complete(parser, options.shell).splitlines())
