"""``python -m recipes train PRESET`` and ``evaluate PRESET``, from a clone of the repository."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from vit_demo.cli import run_program
from vit_demo.cli.output import print_lines
from vit_demo.cli.parser import Parser, add_device


def build_parser() -> argparse.ArgumentParser:
    """The parser; ``parse_args(...).run`` is the function of the chosen command."""
    parser = Parser(prog="python -m recipes", description="Trains and evaluates the bundled presets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    shared = Parser(add_help=False)
    shared.add_argument("preset", metavar="PRESET", help="a bundled preset")
    shared.add_argument(
        "--data", type=Path, required=True, metavar="PATH", help="folder of the data, as docs/training.md lists them"
    )

    command = commands.add_parser("train", parents=[shared], help="train a preset, from random weights or earlier ones")
    command.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="output folder (default: runs)")
    command.add_argument("--start", type=Path, metavar="DIR", help="start from the checkpoints in a folder")
    command.add_argument("--resume", action="store_true", help="continue an interrupted run in the output folder")
    command.add_argument("--epochs", type=int, metavar="N", help="number of epochs (default: the recipe's)")
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: %(default)s)"
    )
    command.set_defaults(run=train, when_stopped=" Continue with --resume.")

    command = commands.add_parser("evaluate", parents=[shared], help="accuracy and calibration on the test data")
    add_device(command)
    command.add_argument("--patch-size", type=int, metavar="N", help="in pixels (default: all sizes of the preset)")
    command.add_argument(
        "--weights", type=Path, metavar="DIR", help="folder of the checkpoints (default: the bundled ones)"
    )
    command.add_argument(
        "--plot", type=Path, nargs="?", const=Path("out"), metavar="DIR",
        help="also plot confusion matrices and reliability diagrams into a folder (default: out)",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=evaluate)
    return parser


def train(options: argparse.Namespace) -> None:
    """Trains, and prints the paths of the checkpoints."""
    from recipes.recipes import bundled_preset
    from recipes.run import train_preset
    from vit_demo.accelerator import best_device

    paths = train_preset(
        bundled_preset(options.preset),
        options.data,
        options.out,
        device=best_device(),
        seed=options.seed,
        epochs=options.epochs,
        resume=options.resume,
        start=options.start,
    )
    print_lines(*(f"wrote {path}" for path in paths))


def evaluate(options: argparse.Namespace) -> None:
    """Evaluates, and prints the report."""
    from recipes.evaluate import report_preset

    report = report_preset(
        options.preset,
        options.data,
        patch_size=options.patch_size,
        device=options.device,
        weights=options.weights,
        plot=options.plot,
        as_json=options.json,
    )
    print_lines(*report.split("\n"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command, with the arguments of the process for None, and returns the exit code of ``vit_demo``'s."""
    return run_program(build_parser(), "recipes", arguments)


if __name__ == "__main__":
    sys.exit(main())
